// Included by one source file for each width of vectors, which says WIDTH (numbers in a vector), NAME and
// KERNEL. All is local to that file: nothing that was built for a wide machine may be taken where another one
// runs.

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

#define INLINE [[gnu::always_inline]] inline
using Each = std::make_index_sequence<PARTS>;

// All parts at once: a loop over them would keep them in memory.
template <typename Result, size_t... PART, typename Make>
INLINE Result make(std::index_sequence<PART...>, Make make_part) {
    return {{make_part(PART)...}};
}

INLINE Numbers load(const Lanes &from) {
    return make<Numbers>(Each(), [&](size_t part) __attribute__((always_inline)) {
        return *reinterpret_cast<const Vector *>(from.of + part * WIDTH);
    });
}
INLINE Choice load(const Agreed &from) {
    return make<Choice>(Each(), [&](size_t part) __attribute__((always_inline)) {
        return *reinterpret_cast<const Flags *>(from.of + part * WIDTH);
    });
}
template <size_t... PART> INLINE void store(std::index_sequence<PART...>, Lanes &to, const Numbers &from) {
    ((*reinterpret_cast<Vector *>(to.of + PART * WIDTH) = from.part[PART]), ...);
}
INLINE void store(Lanes &to, const Numbers &from) { store(Each(), to, from); }

INLINE Numbers operator+(const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) __attribute__((always_inline)) {
        return one.part[part] + other.part[part];
    });
}
INLINE Numbers operator*(double one, const Numbers &other) {
    return make<Numbers>(Each(),
                         [&](size_t part) __attribute__((always_inline)) { return one * other.part[part]; });
}
INLINE Choice operator>(const Numbers &one, const Numbers &other) {
    return make<Choice>(Each(), [&](size_t part) __attribute__((always_inline)) {
        return one.part[part] > other.part[part];
    });
}
INLINE Numbers where(const Choice &which, const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) __attribute__((always_inline)) {
        return which.part[part] ? one.part[part] : other.part[part];
    });
}
INLINE Numbers later(const Numbers &one, const Numbers &other) {
    return make<Numbers>(Each(), [&](size_t part) __attribute__((always_inline)) {
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

// One rank's steps, with its clocks in registers.
template <bool KEEPS_CHOICES, bool HAS_BURSTS> class Runner {
  public:
    INLINE explicit Runner(const Kernel &kernel)
        : kernel_(kernel), compute_(load(kernel.compute)), between_(load(kernel.latency[BETWEEN_NODES])) {}

    INLINE void run() {
        size_t number = 0;
        for (const Run &run : kernel_.runs) {
            RankClock &rank = kernel_.clocks[run.rank];
            clock_ = load(rank.clock);
            out_ = load(rank.out);
            in_ = load(rank.in);
            for (; number < run.end; number++) {
                chosen_ = 0;
                number_ = number;
                step(kernel_.steps[number], run.rank);
                if constexpr (KEEPS_CHOICES)
                    kernel_.choices[number] = static_cast<uint16_t>(chosen_);
            }
            store(rank.clock, clock_);
            store(rank.out, out_);
            store(rank.in, in_);
        }
    }

  private:
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
            store(kernel_.ready[step.slot()], clock_);
            break;
        case TRANSFER:
            transfer(step, rank);
            break;
        case ANSWER:
            answer(step, between_);
            break;
        case ANSWER | within:
            answer(step, load(kernel_.latency[WITHIN_NODE]));
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

    // Remember which of two numbers was later.
    template <size_t PLACE> INLINE void choose(const Numbers &later_one, const Numbers &other) {
        if constexpr (KEEPS_CHOICES)
            chosen_ |= bits(Each(), later_one > other) << PLACE * LANES;
    }

    // Until when the interface is taken, and when the message has left it.
    struct Left {
        Numbers out, gone;
    };
    INLINE Left through_interface(const Numbers &ready, const SizeCosts &costs) {
        choose<0>(out_, ready);
        const Numbers taken = later(ready, out_) + load(costs.wire);
        if constexpr (!HAS_BURSTS)
            return {taken, taken};
        const Numbers first = ready + load(costs.first), behind = out_ + load(costs.behind);
        choose<1>(behind, first);
        return {taken, later(first, behind)};
    }

    INLINE void send(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        clock_ = clock_ + load(costs.send);
        const Left left = through_interface(clock_, costs);
        out_ = left.out;
        clock_ = clock_ + load(costs.after);
        store(kernel_.arrived[step.slot()], left.gone + between_);
    }

    INLINE void send_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        clock_ = clock_ + load(costs.send);
        store(kernel_.arrived[step.slot()], clock_ + load(costs.wire) + load(kernel_.latency[WITHIN_NODE]));
        clock_ = clock_ + load(costs.after);
    }

    INLINE void offer(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Choice agreed = load(kernel_.agreed[step.size()]);
        clock_ = clock_ + load(costs.send);
        const Left left = through_interface(clock_, costs);
        out_ = where(agreed, out_, left.out);
        store(kernel_.arrived[step.slot()], where(agreed, clock_, left.gone + between_));
        clock_ = where(agreed, clock_, clock_ + load(costs.after));
        kernel_.sizes[step.slot()] = step.size();
    }

    INLINE void offer_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Choice agreed = load(kernel_.agreed[step.size()]);
        clock_ = clock_ + load(costs.send);
        store(kernel_.arrived[step.slot()],
              where(agreed, clock_, clock_ + load(costs.wire) + load(kernel_.latency[WITHIN_NODE])));
        clock_ = where(agreed, clock_, clock_ + load(costs.after));
        kernel_.sizes[step.slot()] = step.size() | OF_NODE;
    }

    INLINE void transfer(const Step step, uint32_t rank) {
        const uint32_t noted = kernel_.sizes[step.slot()], size = noted & ~OF_NODE;
        const bool is_within = (noted & OF_NODE) != 0;
        const Choice agreed = load(kernel_.agreed[size]);
        const Numbers latency = load(kernel_.latency[is_within ? WITHIN_NODE : BETWEEN_NODES]);
        Lanes &arrived = kernel_.arrived[step.slot()], &ready = kernel_.ready[step.slot()];
        const Numbers asked = load(arrived) + latency, answered = load(ready);
        choose<0>(answered, asked);
        const Numbers start = later(asked, answered) + latency;
        Lanes &outs = kernel_.clocks[step.sender()].out;
        const bool is_own = step.sender() == rank;
        const Numbers out = is_own ? out_ : load(outs);
        const SizeCosts &costs = kernel_.costs[size];
        Numbers gone = start + load(HAS_BURSTS ? costs.first : costs.wire);
        if (!is_within) {
            choose<1>(out, start);
            const Numbers until = later(start, out) + load(costs.wire);
            if constexpr (HAS_BURSTS) {
                const Numbers behind = out + load(costs.behind);
                if constexpr (KEEPS_CHOICES)
                    kernel_.gone_behind[number_] = static_cast<uint8_t>(bits(Each(), behind > gone));
                gone = later(gone, behind);
            } else {
                gone = until;
            }
            const Numbers taken = where(agreed, until, out);
            if (is_own)
                out_ = taken;
            else
                store(outs, taken);
        }
        store(arrived, where(agreed, gone + latency, load(arrived)));
        store(ready, gone);
    }

    INLINE void answer(const Step step, const Numbers &latency) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        Lanes &arrived = kernel_.arrived[step.slot()], &ready = kernel_.ready[step.slot()];
        const Numbers come = load(arrived), posted = load(ready);
        choose<0>(posted, come);
        const Numbers met = later(posted, come);
        store(arrived, met + load(costs.answering));
        store(ready, met + load(costs.answered) + latency);
    }

    INLINE void hear(const Step step) {
        const Numbers told = load(kernel_.ready[step.slot()]);
        choose<1>(told, clock_);
        clock_ = later(clock_, told);
    }

    INLINE void sent(const Step step) {
        const Choice agreed = load(kernel_.agreed[step.size()]);
        const Numbers gone = where(agreed, load(kernel_.ready[step.slot()]), clock_);
        choose<1>(gone, clock_);
        clock_ = where(agreed, later(clock_, gone) + load(kernel_.costs[step.size()].after), clock_);
    }

    INLINE void receive(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Numbers come = load(kernel_.arrived[step.slot()]);
        const Numbers behind = in_ + load(HAS_BURSTS ? costs.first : costs.wire);
        choose<0>(behind, come);
        in_ = later(come, behind);
        choose<1>(in_, clock_);
        clock_ = later(clock_, in_) + load(costs.receive);
    }

    INLINE void receive_within(const Step step) {
        const SizeCosts &costs = kernel_.costs[step.size()];
        const Numbers come = load(kernel_.arrived[step.slot()]);
        choose<1>(come, clock_);
        clock_ = later(clock_, come) + load(costs.receive);
    }

    static constexpr uint32_t OF_NODE = 1U << 31; // noted with a size

    const Kernel &kernel_;
    const Numbers compute_, between_;
    Numbers clock_, out_, in_;
    uint32_t chosen_ = 0;
    size_t number_ = 0; // of the step
};

template <bool KEEPS_CHOICES, bool HAS_BURSTS> [[gnu::flatten]] void run(const Kernel &kernel) {
    Runner<KEEPS_CHOICES, HAS_BURSTS>(kernel).run();
}

} // namespace

extern const KernelKind KERNEL;
const KernelKind KERNEL{NAME, {run<false, false>, run<true, false>}, {run<false, true>, run<true, true>}};

} // namespace wulf
