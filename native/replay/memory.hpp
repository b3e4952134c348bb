// Large arrays, and how much memory there is for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>
#include <type_traits>

namespace wulf {

// What this process may still take: of the machine's memory, of its control group's, and of its own limit
// [B].
uint64_t available_bytes();

// A number of bytes for a person.
std::string said_bytes(double bytes);

// Ask the kernel for large pages.
void prefer_large_pages(void *start, size_t bytes);

// A growing array whose elements are not set before they are written. A large one grows where it is, or its
// pages are moved: never two copies of it at a time.
template <typename Element> class Buffer {
    static_assert(std::is_trivially_copyable_v<Element>);

  public:
    Buffer() = default;
    ~Buffer() { std::free(data_); }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    Buffer(Buffer &&other) noexcept { swap(other); }
    Buffer &operator=(Buffer &&other) noexcept {
        swap(other);
        return *this;
    }

    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] bool is_full() const { return size_ == capacity_; }
    [[nodiscard]] Element *data() { return data_; }
    [[nodiscard]] const Element *data() const { return data_; }
    Element &operator[](size_t place) { return data_[place]; }
    const Element &operator[](size_t place) const { return data_[place]; }
    Element &back() { return data_[size_ - 1]; }
    [[nodiscard]] const Element *begin() const { return data_; }
    [[nodiscard]] const Element *end() const { return data_ + size_; }

    void reserve(size_t capacity) {
        if (capacity <= capacity_)
            return;
        void *const grown = std::realloc(data_, capacity * sizeof(Element));
        if (grown == nullptr)
            throw std::bad_alloc();
        data_ = static_cast<Element *>(grown);
        capacity_ = capacity;
        prefer_large_pages(data_, capacity * sizeof(Element));
    }
    // Its new elements are not set.
    void resize(size_t size) {
        reserve(size);
        size_ = size;
    }
    void push_back(const Element &element) {
        if (is_full())
            reserve(capacity_ + capacity_ / 2 + 1024);
        data_[size_++] = element;
    }

  private:
    void swap(Buffer &other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    Element *data_ = nullptr;
    size_t size_ = 0, capacity_ = 0;
};

} // namespace wulf
