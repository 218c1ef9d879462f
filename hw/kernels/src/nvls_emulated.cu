// The kernels of tandem-nvls with emulated multicast accesses.
#define EMULATED
#include "nvls.cu"
