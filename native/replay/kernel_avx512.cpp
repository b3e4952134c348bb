#define WIDTH 8
#define NAME "avx512"
#define KERNEL AVX512_KERNEL
#include "replay/kernel_body.hpp"
