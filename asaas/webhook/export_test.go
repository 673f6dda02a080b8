package webhook

// Step is a look of Run.
var Step = (*Watch).step
