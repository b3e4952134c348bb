#include "replay/wild.hpp"

#include <unordered_map>
#include <unordered_set>

namespace wulf {

std::vector<Sender> senders(Stream &stream) {
    std::vector<Sender> found;
    std::unordered_map<uint32_t, size_t> open; // request → which of them
    std::unordered_set<uint32_t> persistent;
    stream.rewind();
    for (Event event; stream.next(event);) {
        const auto &record = event.record;
        const bool is_wild = (record.flags & TRACE_WILD) != 0;
        switch (record.kind) {
        case TRACE_RECV_INIT:
            if (is_wild)
                persistent.insert(record.request);
            break;
        case TRACE_FREE:
            persistent.erase(record.request);
            break;
        case TRACE_IRECV:
        case TRACE_START:
            if (record.kind == TRACE_IRECV ? is_wild : persistent.contains(record.request)) {
                open[record.request] = found.size();
                found.push_back({TRACE_ANY, TRACE_ANY});
            }
            break;
        case TRACE_WAIT:
        case TRACE_WAIT_SOME:
        case TRACE_TEST:
            if (const auto begun = open.find(record.request); begun != open.end()) {
                found[begun->second] = {record.peer, record.tag};
                open.erase(begun);
            }
            break;
        default:
            break;
        }
    }
    stream.rewind();
    return found;
}

} // namespace wulf
