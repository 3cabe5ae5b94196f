//go:build race

package e2e_test

// raceFactor is how much more memory than otherwise the programs under test take, which are built
// to find data races as the tests are.
const raceFactor = 4
