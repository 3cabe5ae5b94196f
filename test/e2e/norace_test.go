//go:build !race

package e2e_test

// raceFactor is 1: the programs under test take the memory that they do in a cluster.
const raceFactor = 1
