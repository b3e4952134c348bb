#include "replay/memory.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace wulf {

namespace {

// The number after a word in a file of words and numbers.
std::optional<uint64_t> number_after(const std::string &path, const std::string &word) {
    std::ifstream file(path);
    for (std::string one; file >> one;)
        if (one == word) {
            uint64_t number = 0;
            return file >> number ? std::optional(number) : std::nullopt;
        }
    return std::nullopt;
}

std::optional<uint64_t> first_number(const std::string &path) {
    std::ifstream file(path);
    uint64_t number = 0;
    return file >> number ? std::optional(number) : std::nullopt;
}

uint64_t left(uint64_t limit, uint64_t used) { return limit - std::min(limit, used); }

// Of all groups above this process: their files in memory can be dropped, so that only the rest counts.
uint64_t left_of_groups() {
    uint64_t least = std::numeric_limits<uint64_t>::max();
    std::ifstream file("/proc/self/cgroup");
    for (std::string line; std::getline(file, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos)
            continue;
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool is_unified = controllers.empty();
        if (!is_unified && controllers != "memory")
            continue;
        const std::string root = is_unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
        for (std::string group = line.substr(second + 1);;) {
            const std::string place = root + group;
            const auto limit = first_number(place + (is_unified ? "/memory.max" : "/memory.limit_in_bytes"));
            const auto used = number_after(place + "/memory.stat", is_unified ? "anon" : "total_rss");
            if (limit)
                least = std::min(least, left(*limit, used.value_or(0)));
            const size_t parent = group.find_last_of('/');
            if (parent == std::string::npos)
                break;
            group.resize(parent);
        }
    }
    return least;
}

// Of the process's own limit (ulimit -v).
uint64_t left_of_limit() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return std::numeric_limits<uint64_t>::max();
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return left(limit.rlim_cur, first_number("/proc/self/statm").value_or(0) * page);
}

} // namespace

uint64_t available_bytes() {
    constexpr uint64_t kib = 1024;
    const auto machine = number_after("/proc/meminfo", "MemAvailable:");
    const uint64_t of_machine = machine ? *machine * kib : std::numeric_limits<uint64_t>::max();
    return std::min({of_machine, left_of_groups(), left_of_limit()});
}

std::string said_bytes(double bytes) {
    constexpr double mib = 1 << 20, gib = 1 << 30;
    char text[32];
    if (bytes < gib)
        std::snprintf(text, sizeof text, "%.0f MiB", bytes / mib);
    else
        std::snprintf(text, sizeof text, "%.1f GiB", bytes / gib);
    return text;
}

void prefer_large_pages(void *start, size_t bytes) {
    constexpr size_t large = size_t{1} << 21;
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    if (bytes < 2 * large)
        return;
    const auto from = (reinterpret_cast<uintptr_t>(start) + page - 1) & -page;
    const auto to = (reinterpret_cast<uintptr_t>(start) + bytes) & -page;
    madvise(reinterpret_cast<void *>(from), to - from, MADV_HUGEPAGE); // a wish only
}

} // namespace wulf
