// Tests with a real control plane. A module of its own, so that the agent never links what only tests need.
module github.com/troupe-vpp/troupe/test

go 1.26.0
