#include "replay/trace.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <numeric>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace wulf {

const char *kind_name(trace_kind kind) {
    switch (kind) {
    case TRACE_COMMUNICATOR:
        return "communicator";
    case TRACE_TIME:
        return "time";
    case TRACE_PHASE:
        return "phase";
    case TRACE_SEND:
        return "send";
    case TRACE_SSEND:
        return "ssend";
    case TRACE_BSEND:
        return "bsend";
    case TRACE_RECV:
        return "recv";
    case TRACE_ISEND:
        return "isend";
    case TRACE_ISSEND:
        return "issend";
    case TRACE_IBSEND:
        return "ibsend";
    case TRACE_IRECV:
        return "irecv";
    case TRACE_SENDRECV:
        return "sendrecv";
    case TRACE_RECV_PART:
        return "recv_part";
    case TRACE_SEND_INIT:
        return "send_init";
    case TRACE_SSEND_INIT:
        return "ssend_init";
    case TRACE_BSEND_INIT:
        return "bsend_init";
    case TRACE_RECV_INIT:
        return "recv_init";
    case TRACE_START:
        return "start";
    case TRACE_FREE:
        return "free";
    case TRACE_PROBE:
        return "probe";
    case TRACE_MRECV:
        return "mrecv";
    case TRACE_IMRECV:
        return "imrecv";
    case TRACE_WAIT:
        return "wait";
    case TRACE_WAIT_SOME:
        return "wait_some";
    case TRACE_TEST:
        return "test";
    case TRACE_CANCEL:
        return "cancel";
    case TRACE_BARRIER:
        return "barrier";
    case TRACE_BCAST:
        return "bcast";
    case TRACE_GATHER:
        return "gather";
    case TRACE_GATHERV:
        return "gatherv";
    case TRACE_SCATTER:
        return "scatter";
    case TRACE_SCATTERV:
        return "scatterv";
    case TRACE_ALLGATHER:
        return "allgather";
    case TRACE_ALLGATHERV:
        return "allgatherv";
    case TRACE_ALLTOALL:
        return "alltoall";
    case TRACE_ALLTOALLV:
        return "alltoallv";
    case TRACE_ALLTOALLW:
        return "alltoallw";
    case TRACE_REDUCE:
        return "reduce";
    case TRACE_ALLREDUCE:
        return "allreduce";
    case TRACE_REDUCE_SCATTER:
        return "reduce_scatter";
    case TRACE_REDUCE_SCATTER_BLOCK:
        return "reduce_scatter_block";
    case TRACE_SCAN:
        return "scan";
    case TRACE_EXSCAN:
        return "exscan";
    case TRACE_NEIGHBOR_ALLGATHER:
        return "neighbor_allgather";
    case TRACE_NEIGHBOR_ALLGATHERV:
        return "neighbor_allgatherv";
    case TRACE_NEIGHBOR_ALLTOALL:
        return "neighbor_alltoall";
    case TRACE_NEIGHBOR_ALLTOALLV:
        return "neighbor_alltoallv";
    case TRACE_NEIGHBOR_ALLTOALLW:
        return "neighbor_alltoallw";
    case TRACE_MAKE_COMMUNICATOR:
        return "make_communicator";
    case TRACE_WINDOW:
        return "window";
    case TRACE_FENCE:
        return "fence";
    case TRACE_PUT:
        return "put";
    case TRACE_WINDOW_FREE:
        return "window_free";
    case TRACE_OTHER:
        return "other";
    }
    return "";
}

MappedFile::MappedFile(const std::string &path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
        throw InputError(path + ": " + std::strerror(errno));
    struct stat status{};
    void *start = nullptr;
    const bool known = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
    if (known && status.st_size > 0)
        start = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    const int error = errno;
    close(file);
    if (!known)
        throw InputError(path + ": not a file");
    if (start == MAP_FAILED)
        throw InputError(path + ": " + std::strerror(error));
    bytes_ = {static_cast<const std::byte *>(start), static_cast<size_t>(status.st_size)};
}

MappedFile::~MappedFile() {
    if (!bytes_.empty())
        munmap(const_cast<std::byte *>(bytes_.data()), bytes_.size());
}

namespace {

template <typename Record> Record read(std::span<const std::byte> bytes) {
    Record record;
    std::memcpy(&record, bytes.data(), sizeof record);
    return record;
}

bool is_part(std::span<const std::byte> whole, uint64_t offset, uint64_t bytes) {
    return offset <= whole.size() && bytes <= whole.size() - offset;
}

constexpr size_t SLOT = TRACE_SLOT_BYTES;

} // namespace

uint64_t Event::size_at(size_t place) const {
    uint64_t size = 0;
    if (place < sizes())
        std::memcpy(&size, payload.data() + place * sizeof size, sizeof size);
    return size;
}

Stream::Stream(std::span<const std::byte> bytes, std::string name) : name_(std::move(name)) {
    if (bytes.size() < TRACE_HEADER_BYTES)
        throw InputError(name_ + ": cut off in its header");
    header_ = read<trace_header>(bytes);
    if (std::memcmp(header_.magic, TRACE_STREAM_MAGIC, sizeof header_.magic) != 0)
        throw InputError(name_ + ": not a stream of a trace");
    if (header_.version != TRACE_VERSION || header_.header_bytes != TRACE_HEADER_BYTES ||
        header_.slot_bytes != SLOT)
        throw InputError(name_ + ": of version " + std::to_string(header_.version) +
                         "; this program reads version " + std::to_string(TRACE_VERSION));
    slots_ = bytes.subspan(TRACE_HEADER_BYTES);
    if (header_.slots > slots_.size() / SLOT)
        throw InputError(name_ + ": cut off: " + std::to_string(header_.slots) + " records are announced, " +
                         std::to_string(slots_.size() / SLOT) + " are there");
    slots_ = slots_.first(header_.slots * SLOT);
    for (char *text : {header_.host, header_.library})
        text[sizeof header_.host - 1] = '\0';
    header_.program[sizeof header_.program - 1] = '\0';
    threads_ = read<trace_threads>(bytes.subspan(TRACE_THREADS_OFFSET));
    for (trace_thread &thread : threads_.of)
        thread.name[sizeof thread.name - 1] = '\0';
}

void Stream::fail(const std::string &what) const {
    throw InputError(name_ + ": record " + std::to_string(begin_) + ": " + what);
}

void Stream::payload_of(Event &event) {
    event.payload = {};
    if (!(event.record.flags & TRACE_PAYLOAD))
        return;
    const auto rest = slots_.subspan(place_ * SLOT);
    if (rest.size() < SLOT)
        fail("cut off");
    const auto bytes = read<uint64_t>(rest);
    if (bytes > rest.size() - sizeof bytes)
        fail("says that " + std::to_string(bytes) + " B follow; there are not as many");
    event.payload = rest.subspan(sizeof bytes, bytes);
    place_ += (sizeof bytes + bytes + SLOT - 1) / SLOT;
}

bool Stream::next_with_more(Event &event) {
    payload_of(event);
    if (event.record.kind != TRACE_TIME)
        return true;
    if (event.sizes() != 1)
        fail("times without a duration");
    const uint64_t compute_ns = event.record.bytes, call_ns = event.size_at(0);
    if (place_ == slots_.size() / SLOT)
        return false; // the program died between the two
    event.record = read<trace_record>(slots_.subspan(place_++ * SLOT));
    if (event.record.kind == TRACE_TIME)
        fail("times of times");
    payload_of(event);
    event.compute_ns = compute_ns;
    event.call_ns = call_ns;
    return true;
}

Trace::Trace(std::span<const std::byte> bytes, const std::string &name) : name_(name) {
    if (bytes.size() < sizeof(trace_container))
        throw InputError(name + ": not a trace: too short");
    const auto container = read<trace_container>(bytes);
    if (std::memcmp(container.magic, TRACE_CONTAINER_MAGIC, sizeof container.magic) != 0)
        throw InputError(name + ": not a trace");
    if (container.version != TRACE_VERSION)
        throw InputError(name + ": of version " + std::to_string(container.version) +
                         "; this program reads version " + std::to_string(TRACE_VERSION));
    const auto parts = bytes.subspan(sizeof container);
    if (container.ranks == 0 || container.ranks > parts.size() / sizeof(trace_part))
        throw InputError(name + ": cut off in the list of its ranks");
    if (!is_part(bytes, container.note_offset, container.note_bytes))
        throw InputError(name + ": cut off before its note");
    note_ = {reinterpret_cast<const char *>(bytes.data() + container.note_offset), container.note_bytes};
    streams_.reserve(container.ranks);
    uint64_t claimed = 0; // streams that lie one over the other would seem larger than the file
    for (uint32_t rank = 0; rank < container.ranks; rank++) {
        const std::string of_rank = name + ": rank " + std::to_string(rank);
        const auto part = read<trace_part>(parts.subspan(rank * sizeof(trace_part)));
        if (part.bytes == 0)
            throw InputError(of_rank + " left no stream");
        if (!is_part(bytes, part.offset, part.bytes))
            throw InputError(of_rank + ": cut off");
        claimed += part.bytes;
        if (claimed > bytes.size())
            throw InputError(of_rank + ": its stream is also another rank's");
        streams_.emplace_back(bytes.subspan(part.offset, part.bytes), of_rank);
        const auto &header = streams_.back().header();
        if (header.rank != static_cast<int32_t>(rank) ||
            header.ranks != static_cast<int32_t>(container.ranks))
            throw InputError(of_rank + ": the stream is that of rank " + std::to_string(header.rank) +
                             " of " + std::to_string(header.ranks));
    }
    std::vector<int32_t> world(ranks());
    std::iota(world.begin(), world.end(), 0);
    communicators_.add(world);
    locals_.resize(ranks());
    late_.resize(ranks());
    for (size_t rank = 0; rank < ranks(); rank++)
        scan(rank);
}

uint64_t Trace::slots() const {
    uint64_t slots = 0;
    for (const auto &stream : streams_)
        slots += stream.header().slots;
    return slots;
}

namespace {

// Kinds of records that send or receive a message.
constexpr uint64_t MESSAGES = [] {
    uint64_t kinds = 0;
    for (const auto kind :
         {TRACE_SEND, TRACE_SSEND, TRACE_BSEND, TRACE_RECV, TRACE_ISEND, TRACE_ISSEND, TRACE_IBSEND,
          TRACE_IRECV, TRACE_SENDRECV, TRACE_RECV_PART, TRACE_START, TRACE_MRECV, TRACE_IMRECV})
        kinds |= uint64_t{1} << kind;
    return kinds;
}();

} // namespace

void Trace::scan(size_t rank) {
    CommunicatorsOfRank made;
    auto &locals = locals_[rank];
    const auto own = static_cast<int32_t>(rank);
    locals.resize(2);
    // The first list of members is the world's.
    locals[TRACE_WORLD] = {.global = communicators_.make(0, false, made), .rank = own};
    const uint32_t self = ranks() == 1 ? 0 : communicators_.add({&own, 1});
    locals[TRACE_SELF] = {.global = communicators_.make(self, false, made), .rank = 0};
    auto &stream = streams_[rank];
    stream.rewind();
    bool is_wild = false, cancels = false;
    uint64_t messages = 0;
    for (Event event; stream.next(event);) {
        const uint8_t kind = event.record.kind;
        messages += kind < 64 ? MESSAGES >> kind & 1 : 0;
        is_wild |= (event.record.flags & TRACE_WILD) != 0;
        cancels |= kind == TRACE_CANCEL;
        has_synchronous_ |= kind == TRACE_SSEND || kind == TRACE_ISSEND || kind == TRACE_SSEND_INIT;
        if (kind == TRACE_COMMUNICATOR)
            learn(rank, event, made);
    }
    late_[rank] = cancels ? LateReceives::ALL : is_wild ? LateReceives::WILD : LateReceives::NONE;
    messages_ += messages;
    stream.rewind();
}

namespace {

// What a record says of a communicator.
struct Described {
    trace_communicator head;
    std::vector<int32_t> numbers;

    [[nodiscard]] std::span<const int32_t> members() const { return std::span(numbers).first(head.members); }
    [[nodiscard]] std::span<const int32_t> sources() const {
        return std::span(numbers).subspan(head.members, head.sources);
    }
    [[nodiscard]] std::span<const int32_t> targets() const {
        return std::span(numbers).subspan(size_t{head.members} + head.sources);
    }
};

Described described(const Stream &stream, const Event &event) {
    if (event.payload.size() < sizeof(trace_communicator))
        stream.fail("a communicator without members");
    Described found{read<trace_communicator>(event.payload), {}};
    const auto rest = event.payload.subspan(sizeof found.head);
    const uint64_t numbers = uint64_t{found.head.members} + found.head.sources + found.head.targets;
    if (numbers > rest.size() / sizeof(int32_t))
        stream.fail("a communicator whose members are cut off");
    found.numbers.resize(numbers);
    if (numbers > 0)
        std::memcpy(found.numbers.data(), rest.data(), numbers * sizeof(int32_t));
    return found;
}

// A neighbour may be missing (TRACE_NOBODY), at the edge of a mesh.
std::vector<int32_t> neighbours(const Stream &stream, std::span<const int32_t> of, size_t members) {
    std::vector<int32_t> found(of.begin(), of.end());
    for (auto &one : found) {
        if (one >= 0 && static_cast<size_t>(one) >= members)
            stream.fail("a neighbour that does not exist");
        one = std::max(one, int32_t{TRACE_NOBODY});
    }
    return found;
}

} // namespace

void Trace::learn(size_t rank, const Event &event, CommunicatorsOfRank &made) {
    const auto &stream = streams_[rank];
    const auto found = described(stream, event);
    const auto members = found.members();
    const auto is_outside = [this](int32_t one) { return one < 0 || static_cast<size_t>(one) >= ranks(); };
    uint32_t list = communicators_.find(members);
    if (members.empty() ||
        (list == Communicators::NONE && std::any_of(members.begin(), members.end(), is_outside)))
        stream.fail("a communicator with a rank that does not exist");
    const auto own = static_cast<size_t>(found.head.rank);
    if (found.head.rank < 0 || own >= members.size() || members[own] != static_cast<int32_t>(rank))
        stream.fail("a communicator that this rank is not a member of");
    const uint16_t number = event.record.comm;
    if (number <= TRACE_SELF)
        stream.fail("a communicator with the number of the world");
    constexpr uint64_t usual = 1024; // numbers follow each other
    if (number >= std::max(usual, stream.header().slots + 2))
        stream.fail("a communicator of number " + std::to_string(number));
    auto &locals = locals_[rank];
    if (number >= locals.size())
        locals.resize(size_t{number} + 1);
    if (list == Communicators::NONE)
        list = communicators_.add(members);
    locals[number] = {.global = communicators_.make(list, found.head.inter != 0, made),
                      .rank = found.head.rank,
                      .sources = neighbours(stream, found.sources(), members.size()),
                      .targets = neighbours(stream, found.targets(), members.size())};
}

} // namespace wulf
