// Blocks that may change places: whichever can be next is.
#include <algorithm>

#include "replay/des.hpp"

namespace wulf {

// Whether all others have come as far as this rank; it goes on when they have.
bool Simulator::is_in_step(uint32_t rank) {
    if (ranks_[rank].clock <= now_)
        return true;
    queue_.push({ranks_[rank].clock, EventKind::RESUME, 0, rank});
    return false;
}

// Go to the block that is next, or out of the choice. False where there is none yet.
bool Simulator::choose(uint32_t rank, uint32_t choice) {
    auto &state = ranks_[rank];
    auto &known = choices_[choice];
    const auto &of = program_.choices[choice];
    state.chooses = NONE;
    if (!known.is_entered) {
        known.is_entered = true;
        for (uint32_t block = of.first_block; block < of.first_block + of.blocks; block++)
            if (program_.blocks[block].message == NONE)
                arrived(block);
    }
    if (known.taken == of.blocks) {
        state.next = of.end_op;
        return true;
    }
    if (known.ready.first == NONE)
        begin_early(choice);
    if (known.ready.first == NONE) {
        state.chooses = choice;
        return false;
    }
    const uint32_t block = take_first(known.ready);
    known.taken++;
    blocks_[block].is_taken = true;
    if (block != of.first_block + known.lowest)
        moved_++;
    while (known.lowest < of.blocks && blocks_[of.first_block + known.lowest].is_taken)
        known.lowest++;
    state.next = program_.blocks[block].first_op;
    return true;
}

// A receive from anybody is begun.
void Simulator::begin_any(uint32_t message) {
    const uint32_t choice = program_.blocks[program_.block_of_come[message]].choice;
    auto &known = choices_[choice];
    if (known.early > 0) {
        known.early--;
        return;
    }
    known.receives++;
    match(choice);
}

// What is waited for is begun in a block, maybe one that is still to come: there is one for each message,
// whichever block it was recorded in.
void Simulator::begin_early(uint32_t choice) {
    auto &known = choices_[choice];
    if (!program_.choices[choice].has_receives || known.receives > 0 || known.under_way > 0)
        return;
    known.early++;
    known.receives++;
    match(choice);
}

void Simulator::announced(uint32_t message) {
    const uint32_t block = program_.block_of_come[message];
    if (program_.choices[program_.blocks[block].choice].chosen != Chosen::BY_REQUEST)
        arrived(block);
}

void Simulator::chosen_come(uint32_t message) {
    const uint32_t block = program_.block_of_come[message], choice = program_.blocks[block].choice;
    const auto chosen = program_.choices[choice].chosen;
    if (!costs_of(message).agreed || chosen == Chosen::BY_REQUEST) {
        arrived(block);
    } else if (chosen == Chosen::BY_RECEIVE) {
        choices_[choice].under_way--;
        ready(block);
    }
}

// Messages of one sender are taken in the order in which they were sent.
void Simulator::arrived(uint32_t block) {
    blocks_[block].has_come = true;
    const uint32_t before = program_.blocks[block].before;
    if (before == NONE || blocks_[before].is_released)
        for (; block != NONE && blocks_[block].has_come; block = program_.blocks[block].after)
            release(block);
}

void Simulator::release(uint32_t block) {
    blocks_[block].is_released = true;
    const uint32_t choice = program_.blocks[block].choice;
    if (program_.choices[choice].chosen != Chosen::BY_RECEIVE || !program_.choices[choice].has_receives) {
        ready(block);
        return;
    }
    append(choices_[choice].come, block);
    match(choice);
}

// Receives from anybody get messages in the order in which both came.
void Simulator::match(uint32_t choice) {
    auto &known = choices_[choice];
    while (known.receives > 0 && known.come.first != NONE) {
        known.receives--;
        const uint32_t block = take_first(known.come), message = program_.blocks[block].message;
        if (message != NONE && costs_of(message).agreed) {
            known.under_way++;
            post(message, now_);
        } else {
            ready(block);
        }
    }
}

void Simulator::ready(uint32_t block) {
    const uint32_t choice = program_.blocks[block].choice, rank = program_.choices[choice].rank;
    append(choices_[choice].ready, block);
    auto &state = ranks_[rank];
    if (state.chooses == choice) {
        state.chooses = NONE;
        state.idle_ns = std::max(now_ - state.clock, 0.0);
        state.clock += state.idle_ns;
        wake(rank);
    }
}

void Simulator::append(Fifo &fifo, uint32_t block) {
    blocks_[block].next = NONE;
    if (fifo.first == NONE)
        fifo.first = block;
    else
        blocks_[fifo.last].next = block;
    fifo.last = block;
}

uint32_t Simulator::take_first(Fifo &fifo) {
    const uint32_t first = fifo.first;
    fifo.first = blocks_[first].next;
    return first;
}

} // namespace wulf
