//go:build !linux

package main

import "time"

// Nothing of this is known on this system: it is left blank.

func processorTime() time.Duration { return 0 }

func postgresTime(int) time.Duration { return 0 }

func parentOfPostgres(uint32) int { return 0 }

func residentMemory() uint64 { return 0 }

func processor() string { return "" }
