#include "replay/sizes.hpp"

namespace wulf {

void Sizes::refuse(uint64_t bytes) { throw InputError("a message of " + std::to_string(bytes) + " B"); }

uint32_t Sizes::find(uint64_t key, const Size &size) {
    const auto [found, is_new] = numbers_.try_emplace(key, static_cast<uint32_t>(sizes_.size()));
    if (is_new) {
        if (sizes_.size() == Step::MOST_SIZES)
            throw InputError("messages of more than " + std::to_string(Step::MOST_SIZES) +
                             " different sizes");
        sizes_.push_back(size);
    }
    return found->second;
}

} // namespace wulf
