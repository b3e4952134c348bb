#include "replay/des_choices.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace wulf {

namespace {

// A request, from its beginning to its end.
struct Pending {
    int32_t partner = TRACE_NOBODY; // rank of the world; TRACE_ANY until it is known
    uint16_t comm = 0;
    int32_t tag = 0;
    uint32_t begun = 0; // record
    bool is_persistent = false, is_active = false, is_collective = false;
};

// Blocks of one choice wait for the same.
struct Selector {
    Chosen chosen;
    uint16_t comm;
    int32_t tag;

    bool operator==(const Selector &) const = default;
};

class Finder {
  public:
    Finder(Trace &trace, uint32_t rank) : trace_(trace), rank_(rank) {}

    ChoicePlaces find() {
        auto &stream = trace_.stream(rank_);
        stream.rewind();
        for (Event event; stream.next(event);) {
            place_ = static_cast<uint32_t>(stream.place());
            take(event.record);
        }
        place_ = UINT32_MAX;
        close(place_);
        stream.rewind();
        std::sort(found_.begun.begin(), found_.begun.end());
        return std::move(found_);
    }

  private:
    struct Open {
        Selector selector;
        ChoicePlace choice;
        std::vector<uint32_t> records;                    // of its last block
        size_t longest = 0;                               // block before the last [records]
        bool is_probed = false;                           // the last block's message is still to be received
        std::vector<std::pair<uint32_t, uint32_t>> begun; // by receives: record, block
    };

    int32_t world_rank(uint16_t comm, int32_t peer) const {
        if (peer < 0)
            return peer;
        const auto &members = trace_.communicators()[trace_.local(rank_, comm).global].members;
        return static_cast<size_t>(peer) < members.size() ? members[static_cast<size_t>(peer)] : TRACE_NOBODY;
    }

    // --- choices
    // ----------------------------------------------------------------------------------------------

    // A place where any of several may be next.
    void head(const Selector &selector, int32_t partner) {
        if (open_ && open_->is_probed)
            drop_last();
        if (open_ && !(open_->selector == selector))
            close(place_);
        if (!open_) {
            open_ = Open{};
            open_->selector = selector;
            open_->choice.chosen = selector.chosen;
        }
        open_->longest = std::max(open_->longest, open_->records.size());
        open_->records = {place_};
        open_->choice.blocks.push_back({place_, static_cast<uint32_t>(partner)});
    }

    // What a block does: it goes on with its partner, or the choice is over.
    void with(int32_t partner) {
        if (!open_)
            return;
        const bool is_own =
            partner == TRACE_NOBODY || static_cast<uint32_t>(partner) == open_->choice.blocks.back().partner;
        if (is_own)
            open_->records.push_back(place_);
        else
            close(place_);
    }

    // Where a choice turns out to be none after all.
    void drop_last() {
        const uint32_t end = open_->choice.blocks.back().record;
        open_->choice.blocks.pop_back();
        open_->records.clear();
        open_->is_probed = false;
        close(end);
    }

    void close(uint32_t end) {
        if (!open_)
            return;
        if (open_->is_probed) { // what was done about a message that was never received is not known
            drop_last();
            return;
        }
        auto &choice = open_->choice;
        choice.end = end;
        // What follows the last block may have nothing to do with it: no more than others did is taken for
        // it.
        if (open_->longest > 0 && open_->records.size() > open_->longest)
            choice.end = std::min(choice.end, open_->records[open_->longest]);
        std::unordered_set<uint32_t> partners;
        for (const auto &block : choice.blocks)
            partners.insert(block.partner);
        if (partners.size() > 1) {
            for (const auto &[record, block] : open_->begun)
                if (block < choice.blocks.size())
                    found_.begun.push_back(record);
            if (choice.chosen != Chosen::BY_REQUEST)
                found_.chosen += choice.blocks.size();
            found_.choices.push_back(std::move(choice));
        }
        open_.reset();
    }

    // --- records
    // ----------------------------------------------------------------------------------------------

    void receive(const trace_record &record) {
        const int32_t partner = world_rank(record.comm, record.peer);
        const bool is_wild = (record.flags & TRACE_WILD) != 0;
        found_.wild += is_wild ? 1 : 0;
        if (open_ && open_->is_probed &&
            static_cast<uint32_t>(partner) == open_->choice.blocks.back().partner) {
            open_->is_probed = false;
            open_->records.push_back(place_);
        } else if (is_wild && partner >= 0) {
            head({Chosen::BY_ENVELOPE, record.comm, record.tag}, partner);
        } else {
            with(partner);
        }
    }

    void probe(const trace_record &record) {
        const int32_t partner = world_rank(record.comm, record.peer);
        if (!(record.flags & TRACE_WILD) || partner < 0) {
            with(partner);
            return;
        }
        head({Chosen::BY_ENVELOPE, record.comm, record.tag}, partner);
        open_->is_probed = true;
    }

    Pending described(const trace_record &record) const {
        return {.partner = world_rank(record.comm, record.peer),
                .comm = record.comm,
                .tag = record.tag,
                .begun = place_};
    }

    void begin(Pending &request) {
        request.is_active = true;
        request.begun = place_;
        if (request.partner != TRACE_ANY) {
            if (open_ && open_->is_probed)
                open_->is_probed =
                    request.partner != static_cast<int32_t>(open_->choice.blocks.back().partner);
            with(request.partner);
            return;
        }
        found_.wild++;
        // It is for whoever comes: of the choice that is open, or before one.
        if (open_ && open_->selector == Selector{Chosen::BY_RECEIVE, request.comm, request.tag})
            open_->records.push_back(place_);
        else
            close(place_);
    }

    void end(const trace_record &record) {
        const auto found = requests_.find(record.request);
        if (found == requests_.end() || !found->second.is_active)
            return;
        auto &request = found->second;
        request.is_active = false;
        // Several at once were all waited for, but by MPI_Waitsome: which of them came first does not matter.
        const bool is_of_all = (record.flags & TRACE_NEXT) && record.kind != TRACE_WAIT_SOME;
        if (is_of_all && open_ && open_->choice.blocks.back().record == first_of_call_)
            drop_last();
        if (!(record.flags & TRACE_NEXT))
            first_of_call_ = place_;
        if (request.is_collective) {
            close(place_);
        } else if (request.partner == TRACE_ANY && !is_of_all) {
            const int32_t partner = world_rank(record.comm, record.peer);
            if (partner < 0) {
                close(place_);
                return;
            }
            head({Chosen::BY_RECEIVE, request.comm, request.tag}, partner);
            open_->begun.emplace_back(request.begun, static_cast<uint32_t>(open_->choice.blocks.size() - 1));
        } else if (record.kind != TRACE_WAIT && request.partner >= 0 && !is_of_all) {
            head({Chosen::BY_REQUEST, 0, 0}, request.partner);
        } else {
            with(request.partner == TRACE_ANY ? world_rank(record.comm, record.peer) : request.partner);
        }
    }

    void take(const trace_record &record) {
        switch (record.kind) {
        case TRACE_SEND:
        case TRACE_SSEND:
        case TRACE_BSEND:
        case TRACE_SENDRECV:
            with(world_rank(record.comm, record.peer));
            break;
        case TRACE_RECV_PART:
            if (record.flags & TRACE_WILD) {
                found_.wild++;
                close(place_);
            } else {
                with(world_rank(record.comm, record.peer));
            }
            break;
        case TRACE_RECV:
        case TRACE_MRECV:
            receive(record);
            break;
        case TRACE_PROBE:
            probe(record);
            break;
        case TRACE_ISEND:
        case TRACE_ISSEND:
        case TRACE_IBSEND:
        case TRACE_IRECV:
        case TRACE_IMRECV:
            begin(requests_[record.request] = described(record));
            break;
        case TRACE_SEND_INIT:
        case TRACE_SSEND_INIT:
        case TRACE_BSEND_INIT:
        case TRACE_RECV_INIT:
            (requests_[record.request] = described(record)).is_persistent = true;
            break;
        case TRACE_START:
            begin(requests_[record.request]);
            break;
        case TRACE_WAIT:
        case TRACE_WAIT_SOME:
        case TRACE_TEST:
            end(record);
            break;
        case TRACE_FREE:
            requests_.erase(record.request);
            break;
        case TRACE_OTHER:
        case TRACE_PHASE:
        case TRACE_COMMUNICATOR:
            break;
        default:
            if (record.flags & TRACE_NONBLOCKING)
                requests_[record.request] = {.is_active = true, .is_collective = true};
            close(place_);
        }
    }

    Trace &trace_;
    const uint32_t rank_;
    ChoicePlaces found_;
    std::optional<Open> open_;
    std::unordered_map<uint32_t, Pending> requests_;
    uint32_t place_ = 0, first_of_call_ = UINT32_MAX;
};

// Most ranks do not, and need not be read closely.
bool may_choose(Stream &stream) {
    bool found = false;
    stream.rewind();
    for (Event event; !found && stream.next(event);)
        found = (event.record.flags & TRACE_WILD) || event.record.kind == TRACE_WAIT_SOME ||
                event.record.kind == TRACE_TEST;
    stream.rewind();
    return found;
}

} // namespace

ChoicePlaces choice_places(Trace &trace, uint32_t rank) {
    return may_choose(trace.stream(rank)) ? Finder(trace, rank).find() : ChoicePlaces{};
}

} // namespace wulf
