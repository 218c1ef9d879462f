// The kernel of cascade with emulated multicast accesses.
#define EMULATED
#include "cascade.cu"
