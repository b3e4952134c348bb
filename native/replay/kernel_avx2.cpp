#define WIDTH 4
#define NAME "avx2"
#define KERNEL AVX2_KERNEL
#include "replay/kernel_body.hpp"
