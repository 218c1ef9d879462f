// Package nccl executes collectives by the NCCL that is installed: libnccl.so.2
// is opened when it is asked for, nothing is linked. All ranks are in one
// process, one to a GPU, and each call is one group, made in one C call because
// group state belongs to a thread. Copies to every rank (all_to_all) are grouped
// sends and receives, and the lanes of a `many` call are calls of one group.
//
// NCCL_NVLS_ENABLE=0 is set before the library is loaded: no call goes through
// multicast, so results are exact and a mistake cannot block other users of the
// NVLink domain. NCCL_ALGO and NCCL_PROTO are set while communicators are made,
// which is when the library reads them.
//
// The rule users break: a communicator has one rank to a GPU. More ranks than
// GPUs are refused, not shared out.
package nccl
