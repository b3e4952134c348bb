// What the records of a rank do: messages, requests, collectives.
#pragma once

#include "replay/openmpi.hpp"
#include "replay/rank_state.hpp"

namespace wulf {

class Records {
  public:
    Records(Trace &trace, const PlanOptions &options, Messages &messages, std::vector<RankState> &states)
        : trace_(trace), rules_(rules_of(trace.library())), messages_(messages), states_(states) {
        rules_.add(options.rules);
    }

    // What a record does. Throws InputError where it is none.
    void take(uint32_t rank, const Event &event);
    // What the rank does next in the collective that it is in.
    void move(uint32_t rank);

  private:
    void take_request(uint32_t rank, const trace_record &record);
    void send_and_receive(uint32_t rank, const trace_record &record);

    const Place &place(uint32_t rank, uint16_t number);
    uint32_t world_rank(uint32_t rank, std::span<const int32_t> members, int32_t peer) const;
    [[nodiscard]] uint64_t sound_bytes(uint32_t rank, uint64_t bytes) const;
    [[noreturn]] void refuse_kind(uint32_t rank, uint8_t kind) const;
    uint32_t begin_send(uint32_t rank, const trace_record &record);
    uint32_t begin_receive(uint32_t rank, const trace_record &record);
    Sender late_sender(uint32_t rank);
    void finish(uint32_t rank, uint32_t slot, bool is_send) { states_[rank].alone = {slot, is_send}; }

    Request &request(uint32_t rank, uint32_t number);
    void begin_request(uint32_t rank, Request &request, Request::Kind kind, const trace_record &record);
    void make_request(uint32_t rank, const trace_record &record, Request::Kind kind);
    void start_request(uint32_t rank, uint32_t number);
    void end_request(uint32_t rank, uint32_t number);
    void free_request(uint32_t rank, uint32_t number);

    void collective(uint32_t rank, const Event &event);
    std::vector<uint64_t> sizes(uint32_t rank, const Event &event) const;
    void enter(uint32_t rank, const trace_record &record, uint32_t sequence, std::vector<uint64_t> sizes);

    Trace &trace_;
    CollectiveRules rules_; // the library's, then those that are asked for
    Messages &messages_;
    std::vector<RankState> &states_;
};

} // namespace wulf
