package idemsqs
