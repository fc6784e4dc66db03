// Package stats reads entries of the statistics segment of VPP (statseg in its startup.conf). VPP
// writes them into shared memory, so a reading costs its main thread only the hand-over of the
// memory. They are as old as VPP's update-interval at most, 10 s by default.
package stats
