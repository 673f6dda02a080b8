package asaastest

// Inject makes the next attempts go wrong, one fault each, whichever webhook they
// are of. The fault 0 leaves an attempt as it is:
//
//	fake.Inject(0, asaastest.LostAnswer) // the second attempt
//
// Faults that are not used up wait for later attempts.
func (f *Fake) Inject(faults ...Fault) { f.faults.Add(faults...) }

// InjectAPI makes the next requests to the API go wrong, one fault each. A nil
// fault leaves a request as it is.
func (f *Fake) InjectAPI(faults ...APIFault) { f.apiFaults.Add(faults...) }
