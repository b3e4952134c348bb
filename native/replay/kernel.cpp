#include "replay/kernel.hpp"

#include <vector>

namespace wulf {

extern const KernelKind BASELINE_KERNEL, AVX2_KERNEL, AVX512_KERNEL;

std::span<const KernelKind> kernels() {
    static const std::vector<KernelKind> found = [] {
        std::vector<KernelKind> all;
#ifdef WULF_WIDE_KERNELS
        if (__builtin_cpu_supports("avx512f"))
            all.push_back(AVX512_KERNEL);
        if (__builtin_cpu_supports("avx2"))
            all.push_back(AVX2_KERNEL);
#endif
        all.push_back(BASELINE_KERNEL);
        return all;
    }();
    return found;
}

} // namespace wulf
