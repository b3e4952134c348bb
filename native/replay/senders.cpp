#include "replay/senders.hpp"

#include <unordered_map>

namespace wulf {

namespace {

struct Begun {
    size_t place; // among the senders
    bool is_wild, is_cancelled;
};

class Finder {
  public:
    Finder(Stream &stream, LateReceives which) : stream_(stream), which_(which) {}

    std::vector<Sender> find() {
        stream_.rewind();
        for (Event event; stream_.next(event);)
            take(event.record);
        stream_.rewind();
        return std::move(found_);
    }

  private:
    void take(const trace_record &record) {
        switch (record.kind) {
        case TRACE_RECV_INIT:
            made_[record.request] = record;
            break;
        case TRACE_FREE:
            made_.erase(record.request);
            break;
        case TRACE_IRECV:
            begin(record.request, record);
            break;
        case TRACE_START:
            if (const auto made = made_.find(record.request); made != made_.end())
                begin(record.request, made->second);
            break;
        case TRACE_CANCEL:
            if (const auto begun = open_.find(record.request); begun != open_.end())
                begun->second.is_cancelled = true;
            break;
        case TRACE_WAIT:
        case TRACE_WAIT_SOME:
        case TRACE_TEST:
            end(record);
            break;
        default:
            break;
        }
    }

    void begin(uint32_t request, const trace_record &record) {
        if (!is_late(which_, record))
            return;
        const bool is_wild = (record.flags & TRACE_WILD) != 0;
        open_[request] = {.place = found_.size(), .is_wild = is_wild, .is_cancelled = false};
        found_.push_back(is_wild ? Sender{TRACE_ANY, TRACE_ANY} : Sender{record.peer, record.tag});
    }

    void end(const trace_record &record) {
        const auto begun = open_.find(record.request);
        if (begun == open_.end())
            return;
        const auto &[place, is_wild, is_cancelled] = begun->second;
        if (is_wild || (is_cancelled && record.peer == TRACE_NOBODY))
            found_[place] = {record.peer, record.tag};
        open_.erase(begun);
    }

    Stream &stream_;
    const LateReceives which_;
    std::vector<Sender> found_;
    std::unordered_map<uint32_t, Begun> open_; // request → its receive
    std::unordered_map<uint32_t, trace_record> made_;
};

} // namespace

std::vector<Sender> senders(Stream &stream, LateReceives which) { return Finder(stream, which).find(); }

} // namespace wulf
