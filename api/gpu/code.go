package gpu

import "strconv"

// Code is a result code of the CUDA driver (CUresult); a virtual driver
// answers with the same ones.
type Code int

// The codes that host code or a virtual driver may have to name.
const (
	Success               Code = 0
	InvalidValue          Code = 1
	OutOfMemory           Code = 2
	NotInitialized        Code = 3
	StubLibrary           Code = 34
	MulticastResourceFull Code = 47
	NoDevice              Code = 100
	InvalidDevice         Code = 101
	InvalidImage          Code = 200
	InvalidContext        Code = 201
	NoBinaryForGPU        Code = 209
	ECCUncorrectable      Code = 214
	PeerAccessUnsupported Code = 217
	InvalidPTX            Code = 218
	NVLinkUncorrectable   Code = 220
	UnsupportedPTXVersion Code = 222
	Contained             Code = 226
	InvalidHandle         Code = 400
	NotFound              Code = 500
	NotReady              Code = 600
	IllegalAddress        Code = 700
	LaunchOutOfResources  Code = 701
	LaunchTimeout         Code = 702
	PeerAccessEnabled     Code = 704
	PeerAccessNotEnabled  Code = 705
	ContextIsDestroyed    Code = 709
	Assert                Code = 710
	HardwareStackError    Code = 714
	IllegalInstruction    Code = 715
	MisalignedAddress     Code = 716
	InvalidAddressSpace   Code = 717
	InvalidPC             Code = 718
	LaunchFailed          Code = 719
	CooperativeTooLarge   Code = 720
	NotPermitted          Code = 800
	NotSupported          Code = 801
	SystemNotReady        Code = 802
	SystemDriverMismatch  Code = 803
	CompatNotSupported    Code = 804
	MPSClientTerminated   Code = 810
	CaptureUnsupported    Code = 900
	CaptureInvalidated    Code = 901
	CaptureMerge          Code = 902
	CaptureUnmatched      Code = 903
	CaptureUnjoined       Code = 904
	CaptureIsolation      Code = 905
	CaptureImplicit       Code = 906
	CapturedEvent         Code = 907
	CaptureWrongThread    Code = 908
	Timeout               Code = 909
	FunctionNotLoaded     Code = 913
	FabricNotReady        Code = 919
	Unknown               Code = 999
)

// codeInfo is what the table below knows of a code.
type codeInfo struct {
	name   string
	is     error
	sticky bool
}

// codes names the codes of cuda.h (CUDA 13). Which of them are sticky is said
// there, code by code: "this leaves the process in an inconsistent state".
var codes = map[Code]codeInfo{
	Success:               {"CUDA_SUCCESS", nil, false},
	InvalidValue:          {"CUDA_ERROR_INVALID_VALUE", ErrInvalid, false},
	OutOfMemory:           {"CUDA_ERROR_OUT_OF_MEMORY", ErrOutOfMemory, false},
	NotInitialized:        {"CUDA_ERROR_NOT_INITIALIZED", ErrClosed, false},
	StubLibrary:           {"CUDA_ERROR_STUB_LIBRARY", ErrNoDriver, false},
	MulticastResourceFull: {"CUDA_ERROR_MULTICAST_RESOURCE_FULL", ErrOutOfMemory, false},
	NoDevice:              {"CUDA_ERROR_NO_DEVICE", ErrNoDevice, false},
	InvalidDevice:         {"CUDA_ERROR_INVALID_DEVICE", ErrInvalid, false},
	InvalidImage:          {"CUDA_ERROR_INVALID_IMAGE", ErrBadImage, false},
	InvalidContext:        {"CUDA_ERROR_INVALID_CONTEXT", ErrInvalid, false},
	NoBinaryForGPU:        {"CUDA_ERROR_NO_BINARY_FOR_GPU", ErrBadImage, false},
	ECCUncorrectable:      {"CUDA_ERROR_ECC_UNCORRECTABLE", ErrContextLost, true},
	PeerAccessUnsupported: {"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", ErrUnsupported, false},
	InvalidPTX:            {"CUDA_ERROR_INVALID_PTX", ErrBadImage, false},
	NVLinkUncorrectable:   {"CUDA_ERROR_NVLINK_UNCORRECTABLE", ErrContextLost, true},
	UnsupportedPTXVersion: {"CUDA_ERROR_UNSUPPORTED_PTX_VERSION", ErrBadImage, false},
	Contained:             {"CUDA_ERROR_CONTAINED", ErrContextLost, true},
	InvalidHandle:         {"CUDA_ERROR_INVALID_HANDLE", ErrInvalid, false},
	NotFound:              {"CUDA_ERROR_NOT_FOUND", ErrNotFound, false},
	NotReady:              {"CUDA_ERROR_NOT_READY", ErrBusy, false},
	IllegalAddress:        {"CUDA_ERROR_ILLEGAL_ADDRESS", ErrContextLost, true},
	LaunchOutOfResources:  {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", ErrTooLarge, false},
	LaunchTimeout:         {"CUDA_ERROR_LAUNCH_TIMEOUT", ErrContextLost, true},
	PeerAccessEnabled:     {"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", ErrInvalid, false},
	PeerAccessNotEnabled:  {"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", ErrInvalid, false},
	ContextIsDestroyed:    {"CUDA_ERROR_CONTEXT_IS_DESTROYED", ErrContextLost, true},
	Assert:                {"CUDA_ERROR_ASSERT", ErrContextLost, true},
	HardwareStackError:    {"CUDA_ERROR_HARDWARE_STACK_ERROR", ErrContextLost, true},
	IllegalInstruction:    {"CUDA_ERROR_ILLEGAL_INSTRUCTION", ErrContextLost, true},
	MisalignedAddress:     {"CUDA_ERROR_MISALIGNED_ADDRESS", ErrContextLost, true},
	InvalidAddressSpace:   {"CUDA_ERROR_INVALID_ADDRESS_SPACE", ErrContextLost, true},
	InvalidPC:             {"CUDA_ERROR_INVALID_PC", ErrContextLost, true},
	LaunchFailed:          {"CUDA_ERROR_LAUNCH_FAILED", ErrContextLost, true},
	CooperativeTooLarge:   {"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", ErrTooLarge, false},
	NotPermitted:          {"CUDA_ERROR_NOT_PERMITTED", ErrUnsupported, false},
	NotSupported:          {"CUDA_ERROR_NOT_SUPPORTED", ErrUnsupported, false},
	SystemNotReady:        {"CUDA_ERROR_SYSTEM_NOT_READY", ErrUnavailable, false},
	SystemDriverMismatch:  {"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", ErrDriverTooOld, false},
	CompatNotSupported:    {"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", ErrDriverTooOld, false},
	MPSClientTerminated:   {"CUDA_ERROR_MPS_CLIENT_TERMINATED", ErrContextLost, true},
	CaptureUnsupported:    {"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", ErrCapture, false},
	CaptureInvalidated:    {"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", ErrCapture, false},
	CaptureMerge:          {"CUDA_ERROR_STREAM_CAPTURE_MERGE", ErrCapture, false},
	CaptureUnmatched:      {"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", ErrCapture, false},
	CaptureUnjoined:       {"CUDA_ERROR_STREAM_CAPTURE_UNJOINED", ErrCapture, false},
	CaptureIsolation:      {"CUDA_ERROR_STREAM_CAPTURE_ISOLATION", ErrCapture, false},
	CaptureImplicit:       {"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", ErrCapture, false},
	CapturedEvent:         {"CUDA_ERROR_CAPTURED_EVENT", ErrCapture, false},
	CaptureWrongThread:    {"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", ErrCapture, false},
	Timeout:               {"CUDA_ERROR_TIMEOUT", ErrDeadline, false},
	FunctionNotLoaded:     {"CUDA_ERROR_FUNCTION_NOT_LOADED", ErrDriver, false},
	FabricNotReady:        {"CUDA_ERROR_FABRIC_NOT_READY", ErrUnsupported, false},
	Unknown:               {"CUDA_ERROR_UNKNOWN", ErrDriver, false},
}

// String is the name in cuda.h, or the number where this table has none.
func (c Code) String() string {
	if i, ok := codes[c]; ok {
		return i.name
	}
	return "CUresult " + strconv.Itoa(int(c))
}

// Sentinel is the error of this package that the code belongs to; nil for
// Success.
func (c Code) Sentinel() error {
	if i, ok := codes[c]; ok {
		return i.is
	}
	return ErrDriver
}

// Sticky reports whether the code kills the context.
func (c Code) Sticky() bool { return codes[c].sticky }
