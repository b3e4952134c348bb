#define WIDTH 2
#define NAME "baseline"
#define KERNEL BASELINE_KERNEL
#include "replay/kernel_body.hpp"
