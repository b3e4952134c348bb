// Where a program goes on with whichever message comes first, and what it does about each.
//
// A receive from anybody, a probe of anybody's message, a wait for one of several: the trace says who came,
// and what the program did then up to the next such place. On another network another one may come first.
// What was done about it is known from where the trace has it: so these parts (blocks) change places, and no
// message ever gets another partner. That is sound where a block has to do with nobody but the one whose
// message it is about.
#pragma once

#include <cstdint>
#include <vector>

#include "replay/trace.hpp"

namespace wulf {

// When one of several blocks may be next.
enum class Chosen : uint8_t {
    BY_ENVELOPE, // its message has come or, where sender and receiver must agree, been announced
    BY_RECEIVE,  // receives from anybody were begun before: one of them has got its message
    BY_REQUEST,  // its request is complete
};

struct BlockPlace {
    uint32_t record;  // of the rank's stream, where it begins; it ends where the next one begins
    uint32_t partner; // rank of the world: blocks of one partner stay in their order
};

// Blocks that may change places.
struct ChoicePlace {
    Chosen chosen;
    std::vector<BlockPlace> blocks;
    uint32_t end; // the record behind the last block
};

struct ChoicePlaces {
    std::vector<ChoicePlace> choices; // in order
    // Where receives from anybody were begun for one of these: records, in order.
    std::vector<uint32_t> begun;
    uint64_t wild = 0;   // receives from anybody
    uint64_t chosen = 0; // of them those that are in `choices`
};

// Of one rank. The stream is read from its beginning, and left there.
ChoicePlaces choice_places(Trace &trace, uint32_t rank);

} // namespace wulf
