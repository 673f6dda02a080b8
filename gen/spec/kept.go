package spec

func (l *linter) checkKept() {}
