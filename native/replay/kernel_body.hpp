// Included by one source file for each width of vectors, which says WIDTH (numbers in a vector), NAME and
// KERNEL. All is local to that file: nothing that was built for a wide machine may be taken where another one
// runs.

#include <type_traits>
#include <utility>

#include "replay/kernel.hpp"

#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace wulf {

namespace {

constexpr size_t PARTS = LANES / WIDTH;

typedef double Vector __attribute__((vector_size(WIDTH * sizeof(double))));
typedef int64_t Flags __attribute__((vector_size(WIDTH * sizeof(int64_t))));

// Eight numbers as vectors of this width; of flags, all bits are set or none.
template <typename Part> struct Eight {
    Part part[PARTS];
};
using Numbers = Eight<Vector>;
using Choice = Eight<Flags>;

// With the sanitizers' checks in it, to inline all takes a compiler ten times as long and makes nothing
// faster.
#ifdef WULF_CHECKED
#define INLINE inline
#define INLINE_LAMBDA
#define FLATTEN
#else
#define INLINE [[gnu::always_inline]] inline
#define INLINE_LAMBDA __attribute__((always_inline))
#define FLATTEN [[gnu::flatten]]
#endif
using Each = std::make_index_sequence<PARTS>;

// All parts at once: a loop over them would keep them in memory.
template <typename Result, size_t... PART, typename Make>
INLINE Result make(std::index_sequence<PART...>, Make make_part) {
    return {{make_part(PART)...}};
}

INLINE Numbers load(const Lanes &from) {
    return make<Numbers>(Each(), [&](size_t part) INLINE_LAMBDA {
        return *reinterpret_cast<const Vector *>(from.of + part * WIDTH);
    });
}
INLINE Choice load(const Agreed &from) {
    return make<Choice>(Each(), [&](size_t part) INLINE_LAMBDA {
        return *reinterpret_cast<const Flags *>(from.of + part * WIDTH);
    });
}
template <size_t... PART> INLINE void store(std::index_sequence<PART...>, Lanes &to, const Numbers &from) {
    ((*reinterpret_cast<Vector *>(to.of + PART * WIDTH) = from.part[PART]), ...);
}
INLINE void store(Lanes &to, const Numbers &from) { store(Each(), to, from); }

INLINE Numbers operator+(const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(),
                         [&](size_t part) INLINE_LAMBDA { return one.part[part] + other.part[part]; });
}
INLINE Numbers operator+(const Numbers &one, double other) {
    return make<Numbers>(Each(), [&](size_t part) INLINE_LAMBDA { return one.part[part] + other; });
}
INLINE Numbers operator*(double one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) INLINE_LAMBDA { return one * other.part[part]; });
}
INLINE Choice operator>(const Numbers &one, const Numbers &other) {
    return make<Choice>(Each(), [&](size_t part) INLINE_LAMBDA { return one.part[part] > other.part[part]; });
}
INLINE Numbers where(const Choice &which, const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) INLINE_LAMBDA {
        return which.part[part] ? one.part[part] : other.part[part];
    });
}
INLINE Numbers later(const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) INLINE_LAMBDA {
        return one.part[part] > other.part[part] ? one.part[part] : other.part[part];
    });
}

// A bit for each number.
INLINE uint32_t bits(const Flags &flags) {
#if WIDTH == 8 && defined(__AVX512F__)
    return _mm512_cmplt_epi64_mask(reinterpret_cast<__m512i>(flags), _mm512_setzero_si512());
#elif WIDTH == 4 && defined(__AVX__)
    return static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(flags)));
#elif WIDTH == 2 && defined(__SSE2__)
    return static_cast<uint32_t>(_mm_movemask_pd(reinterpret_cast<__m128d>(flags)));
#else
    uint32_t found = 0;
    for (size_t place = 0; place < WIDTH; place++)
        found |= static_cast<uint32_t>(flags[place] & 1) << place;
    return found;
#endif
}
template <size_t... PART> INLINE uint32_t bits(std::index_sequence<PART...>, const Choice &which) {
    return ((bits(which.part[PART]) << (PART * WIDTH)) | ...);
}

// A time, and how many latencies between nodes are in it.
struct Sloped {
    Numbers time, hops;
};

INLINE Sloped operator+(const Sloped &one, const Numbers &more) { return {one.time + more, one.hops}; }
INLINE Sloped where(const Choice &which, const Sloped &one, const Sloped &other) {
    return {where(which, one.time, other.time), where(which, one.hops, other.hops)};
}
// Of equal ones it is the other, as with choices.
INLINE Sloped later(const Sloped &one, const Sloped &other) {
    return where(one.time > other.time, one, other);
}
INLINE const Numbers &time_of(const Numbers &value) { return value; }
INLINE const Numbers &time_of(const Sloped &value) { return value.time; }

// One rank's steps, with its clocks in registers.
template <Keeps KEEPS, bool HAS_BURSTS> class Runner {
  public:
    INLINE explicit Runner(const Kernel &kernel)
        : kernel_(kernel), compute_(load(kernel.compute)), between_(load(kernel.latency[BETWEEN_NODES])) {}

    INLINE void run() {
        size_t number = 0;
        for (const Run &run : kernel_.runs) {
            clock_ = of_rank(run.rank, &RankClock::clock);
            out_ = of_rank(run.rank, &RankClock::out);
            in_ = of_rank(run.rank, &RankClock::in);
            for (; number < run.end; number++) {
                chosen_ = 0;
                number_ = number;
                step(kernel_.steps[number], run.rank);
                if constexpr (KEEPS == Keeps::CHOICES)
                    kernel_.choices[number] = static_cast<uint16_t>(chosen_);
            }
            set_rank(run.rank, &RankClock::clock, clock_);
            set_rank(run.rank, &RankClock::out, out_);
            set_rank(run.rank, &RankClock::in, in_);
        }
    }

  private:
    static constexpr bool HAS_HOPS = KEEPS == Keeps::HOPS;
    using Value = std::conditional_t<HAS_HOPS, Sloped, Numbers>;
    using Clock = Lanes RankClock::*;

    INLINE Value of_rank(uint32_t rank, Clock which) const {
        if constexpr (HAS_HOPS)
            return {load(kernel_.clocks[rank].*which), load(kernel_.clock_hops[rank].*which)};
        else
            return load(kernel_.clocks[rank].*which);
    }
    INLINE void set_rank(uint32_t rank, Clock which, const Value &value) const {
        store(kernel_.clocks[rank].*which, time_of(value));
        if constexpr (HAS_HOPS)
            store(kernel_.clock_hops[rank].*which, value.hops);
    }
    INLINE Value of_slot(const Slots &slots, uint32_t slot) const {
        if constexpr (HAS_HOPS)
            return {load(slots.times[slot]), load(slots.hops[slot])};
        else
            return load(slots.times[slot]);
    }
    INLINE void set_slot(const Slots &slots, uint32_t slot, const Value &value) const {
        store(slots.times[slot], time_of(value));
        if constexpr (HAS_HOPS)
            store(slots.hops[slot], value.hops);
    }
    // After a latency between nodes, or within one.
    INLINE Value after_between(const Value &value) const {
        if constexpr (HAS_HOPS)
            return {value.time + between_, value.hops + 1.0};
        else
            return value + between_;
    }
    INLINE Value after_latency(const Value &value, bool is_within) const {
        return is_within ? value + load(kernel_.latency[WITHIN_NODE]) : after_between(value);
    }

    INLINE void step(const Step step, uint32_t rank) {
        constexpr uint32_t within = Step::IS_WITHIN, mutual = Step::IS_MUTUAL;
        switch (step.way()) {
        case COMPUTE:
            clock_ = clock_ + static_cast<double>(static_cast<int64_t>(step.amount())) * compute_;
            break;
        case REDUCE:
            clock_ = clock_ + static_cast<double>(static_cast<int64_t>(step.amount())) * load(kernel_.reduce);
            break;
        case SEND:
            send(step);
            break;
        case SEND | within:
            send_within(step);
            break;
        case SEND | mutual:
            offer(step);
            break;
        case SEND | within | mutual:
            offer_within(step);
            break;
        case POST | mutual:
            set_slot(kernel_.ready, step.slot(), clock_);
            break;
        case TRANSFER:
            transfer(step, rank);
            break;
        case ANSWER:
            answer(step, false);
            break;
        case ANSWER | within:
            answer(step, true);
            break;
        case SENT:
        case SENT | within:
            hear(step);
            break;
        case SENT | mutual:
        case SENT | within | mutual:
            sent(step);
            break;
        case RECEIVE:
        case RECEIVE | mutual:
            receive(step);
            break;
        case RECEIVE | within:
        case RECEIVE | within | mutual:
            receive_within(step);
            break;
        }
    }

    // Remember which of two was later.
    template <size_t PLACE> INLINE void choose(const Value &later_one, const Value &other) {
        if constexpr (KEEPS == Keeps::CHOICES)
            chosen_ |= bits(Each(), later_one > other) << PLACE * LANES;
    }

    // Until when the interface is taken; and when the message has left it, which is the same without bursts.
    INLINE Value until_taken(const Value &ready, const SizeCosts &costs) {
        choose<0>(out_, ready);
        return later(out_, ready) + load(costs.wire);
    }
    INLINE Value when_gone(const Value &ready, const Value &until, const SizeCosts &costs) {
        if constexpr (!HAS_BURSTS)
            return until;
        const Value first = ready + load(costs.first), behind = out_ + load(costs.behind);
        choose<1>(behind, first);
        return later(behind, first);
    }

    INLINE void send(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        clock_ = clock_ + load(costs.send);
        const Value until = until_taken(clock_, costs), gone = when_gone(clock_, until, costs);
        out_ = until;
        clock_ = clock_ + load(costs.after);
        set_slot(kernel_.arrived, step.slot(), after_between(gone));
    }

    INLINE void send_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        clock_ = clock_ + load(costs.send);
        set_slot(kernel_.arrived, step.slot(), after_latency(clock_ + load(costs.wire), true));
        clock_ = clock_ + load(costs.after);
    }

    INLINE void offer(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Choice agreed = load(kernel_.agreed[step.size()]);
        clock_ = clock_ + load(costs.send);
        const Value until = until_taken(clock_, costs), gone = when_gone(clock_, until, costs);
        out_ = where(agreed, out_, until);
        set_slot(kernel_.arrived, step.slot(), where(agreed, clock_, after_between(gone)));
        clock_ = where(agreed, clock_, clock_ + load(costs.after));
        kernel_.sizes[step.slot()] = step.size();
    }

    INLINE void offer_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Choice agreed = load(kernel_.agreed[step.size()]);
        clock_ = clock_ + load(costs.send);
        set_slot(kernel_.arrived, step.slot(),
                 where(agreed, clock_, after_latency(clock_ + load(costs.wire), true)));
        clock_ = where(agreed, clock_, clock_ + load(costs.after));
        kernel_.sizes[step.slot()] = step.size() | OF_NODE;
    }

    INLINE void transfer(const Step step, uint32_t rank) {
        const uint32_t slot = step.slot(), noted = kernel_.sizes[slot], size = noted & ~OF_NODE;
        const bool is_within = (noted & OF_NODE) != 0;
        const Choice agreed = load(kernel_.agreed[size]);
        const Value asked = after_latency(of_slot(kernel_.arrived, slot), is_within);
        const Value answered = of_slot(kernel_.ready, slot);
        choose<0>(answered, asked);
        const Value start = after_latency(later(answered, asked), is_within);
        const bool is_own = step.sender() == rank;
        const Value out = is_own ? out_ : of_rank(step.sender(), &RankClock::out);
        const SizeCosts &costs = kernel_.costs[size];
        Value gone = start + load(HAS_BURSTS ? costs.first : costs.wire);
        if (!is_within) {
            choose<1>(out, start);
            const Value until = later(out, start) + load(costs.wire);
            if constexpr (HAS_BURSTS) {
                const Value behind = out + load(costs.behind);
                if constexpr (KEEPS == Keeps::CHOICES)
                    kernel_.gone_behind[number_] = static_cast<uint8_t>(bits(Each(), behind > gone));
                gone = later(behind, gone);
            } else {
                gone = until;
            }
            const Value taken = where(agreed, until, out);
            if (is_own)
                out_ = taken;
            else
                set_rank(step.sender(), &RankClock::out, taken);
        }
        set_slot(kernel_.arrived, slot,
                 where(agreed, after_latency(gone, is_within), of_slot(kernel_.arrived, slot)));
        set_slot(kernel_.ready, slot, gone);
    }

    INLINE void answer(const Step step, bool is_within) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Value come = of_slot(kernel_.arrived, step.slot()),
                    posted = of_slot(kernel_.ready, step.slot());
        choose<0>(posted, come);
        const Value met = later(posted, come);
        set_slot(kernel_.arrived, step.slot(), met + load(costs.answering));
        set_slot(kernel_.ready, step.slot(), after_latency(met + load(costs.answered), is_within));
    }

    INLINE void hear(const Step step) {
        const Value told = of_slot(kernel_.ready, step.slot());
        choose<1>(told, clock_);
        clock_ = later(told, clock_);
    }

    INLINE void sent(const Step step) {
        const Choice agreed = load(kernel_.agreed[step.size()]);
        const Value gone = of_slot(kernel_.ready, step.slot()) + load(kernel_.costs[step.size()].after);
        const Value through = where(agreed, gone, clock_);
        choose<1>(through, clock_);
        clock_ = later(through, clock_);
    }

    INLINE void receive(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Value come = of_slot(kernel_.arrived, step.slot());
        const Value behind = in_ + load(HAS_BURSTS ? costs.first : costs.wire);
        choose<0>(behind, come);
        in_ = later(behind, come);
        take(in_, costs);
    }

    INLINE void receive_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        take(of_slot(kernel_.arrived, step.slot()), costs);
    }

    // A message that has come then, or before the rank waits for it.
    INLINE void take(const Value &come, const SizeCosts &costs) {
        const Value busy = clock_ + load(costs.busy);
        choose<1>(come, busy);
        clock_ = later(come, busy) + load(costs.receive);
    }

    static constexpr uint32_t OF_NODE = 1U << 31; // noted with a size

    const Kernel &kernel_;
    const Numbers compute_, between_;
    Value clock_, out_, in_;
    uint32_t chosen_ = 0;
    size_t number_ = 0; // of the step
};

template <Keeps KEEPS, bool HAS_BURSTS> FLATTEN void run(const Kernel &kernel) {
    Runner<KEEPS, HAS_BURSTS>(kernel).run();
}

} // namespace

extern const KernelKind KERNEL;
const KernelKind KERNEL{NAME,
                        {run<Keeps::NOTHING, false>, run<Keeps::CHOICES, false>, run<Keeps::HOPS, false>},
                        {run<Keeps::NOTHING, true>, run<Keeps::CHOICES, true>, run<Keeps::HOPS, true>}};

} // namespace wulf
