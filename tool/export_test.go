package tool

import "belay/agent"

// TempName is the name of the temporary file of a call that changes the file at abs.
func TempName(call agent.CallID, abs string) string { return tempName(call, abs) }
