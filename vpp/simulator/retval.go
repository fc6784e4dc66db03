package simulator

// Return codes of VPP (vnet/error.h) that the simulated handlers use. The
// values are part of VPP's binary API.
const (
	retOK                       int32 = 0
	retUnspecified              int32 = -1
	retInvalidSwIfIndex         int32 = -2
	retNoSuchFIB                int32 = -3
	retNoSuchEntry              int32 = -6
	retInvalidValue             int32 = -7
	retInvalidValue2            int32 = -8
	retUnimplemented            int32 = -9
	retInvalidSwIfIndex2        int32 = -10
	retFeatureDisabled          int32 = -30
	retInvalidRegistration      int32 = -31
	retNoPathsInRoute           int32 = -52
	retInvalidSrcAddress        int32 = -57
	retInvalidDstAddress        int32 = -58
	retAddressNotFound          int32 = -60
	retValueExist               int32 = -81
	retInvalidWorker            int32 = -89
	retAddressInUse             int32 = -105
	retUnsupported              int32 = -126
	retEntryAlreadyExists       int32 = -116
	retDuplicateIfAddress       int32 = -127
	retACLInUseInbound          int32 = -142
	retACLInUseOutbound         int32 = -143
	retAddressFoundForInterface int32 = -114
	retNoMatchingInterface      int32 = -54
	retInvalidPrefixLength      int32 = -171
	retLimitExceeded            int32 = -162
	retEagain                   int32 = -165
	retBug                      int32 = -168
	retAlreadyDisabled          int32 = -169
	retAlreadyEnabled           int32 = -170
)
