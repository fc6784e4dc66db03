package vnet

// Return codes of VPP (vnet/error.h) that the simulated handlers use. The values are part of VPP's
// binary API.
const (
	RetOK                       int32 = 0
	RetUnspecified              int32 = -1
	RetInvalidSwIfIndex         int32 = -2
	RetNoSuchFIB                int32 = -3
	RetNoSuchEntry              int32 = -6
	RetInvalidValue             int32 = -7
	RetInvalidValue2            int32 = -8
	RetUnimplemented            int32 = -9
	RetInvalidSwIfIndex2        int32 = -10
	RetFeatureDisabled          int32 = -30
	RetInvalidRegistration      int32 = -31
	RetNoPathsInRoute           int32 = -52
	RetInvalidSrcAddress        int32 = -57
	RetInvalidDstAddress        int32 = -58
	RetAddressNotFound          int32 = -60
	RetValueExist               int32 = -81
	RetInvalidWorker            int32 = -89
	RetAddressInUse             int32 = -105
	RetUnsupported              int32 = -126
	RetEntryAlreadyExists       int32 = -116
	RetDuplicateIfAddress       int32 = -127
	RetACLInUseInbound          int32 = -142
	RetACLInUseOutbound         int32 = -143
	RetAddressFoundForInterface int32 = -114
	RetNoMatchingInterface      int32 = -54
	RetInvalidPrefixLength      int32 = -171
	RetInvalidProtocol          int32 = -153
	RetLimitExceeded            int32 = -162
	RetEagain                   int32 = -165
	RetBug                      int32 = -168
	RetAlreadyDisabled          int32 = -169
	RetAlreadyEnabled           int32 = -170
)
