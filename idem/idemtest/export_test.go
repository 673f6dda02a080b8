package idemtest

// Permutations are the orders that AnyOrder tries.
var Permutations = permutations
