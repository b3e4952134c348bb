/* Fixed work on one given CPU: it is there and nowhere else, and the process gets its CPUs back. */
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/node.h"
#include "probe/operation.h"
#include "tests/expect.h"

enum { CPUS = NODE_CPU_BYTES * 8, CALLS = 4 };
static struct node granted[CALLS]; /* what the process might run on after each call */
static int calls, ran_on;

/* In place of the C library's, so that it is seen who is called for; the kernel does what it is asked for. */
int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *set) {
    const long status = syscall(SYS_sched_setaffinity, pid, bytes, set);
    if (calls == 0)
        ran_on = sched_getcpu();
    if (calls < CALLS)
        node_describe(&granted[calls]);
    calls++;
    return (int)status;
}

static int visit_on(uint64_t cpu, uint64_t *times_ns, uint64_t iterations, struct failure *failure) {
    struct visit visit = {.parameter = cpu, .iterations = iterations, .seed = 1, .times_ns = times_ns};
    calls = 0;
    const int status = operation_find("noise_on")->initiate(&visit, failure);
    if (status == 0)
        EXPECT(visit.timed == iterations && visit.total_ns >= iterations * 10000);
    return status;
}

static void works_there_and_leaves(const struct node *before, unsigned cpu) {
    uint64_t times_ns[8] = {0};
    struct failure failure = {0};
    EXPECT(visit_on(cpu, times_ns, 8, &failure) == 0);
    EXPECT_TEXT(failure.message, "");
    EXPECT(calls == 2);
    EXPECT(ran_on == (int)cpu);
    for (unsigned other = 0; other < CPUS; other++)
        EXPECT(node_has_cpu(&granted[0], other) == (other == cpu));
    EXPECT(memcmp(granted[1].cpus, before->cpus, sizeof before->cpus) == 0);
    for (size_t i = 0; i < 8; i++)
        EXPECT(times_ns[i] > 10000); /* 100 us, and less where the processor was slow at first */
}

static void refuses(unsigned cpu, const char *wanted) {
    uint64_t times_ns[2];
    struct failure failure = {0};
    EXPECT(visit_on(cpu, times_ns, 2, &failure) == -1);
    EXPECT_TEXT(failure.code, "system");
    EXPECT(strstr(failure.message, wanted) != NULL);
    EXPECT(calls == 0);
}

int main(void) {
    struct node before;
    node_describe(&before);
    unsigned last = 0;
    for (unsigned cpu = 0; cpu < CPUS; cpu++)
        if (node_has_cpu(&before, cpu)) {
            works_there_and_leaves(&before, cpu);
            last = cpu;
        }
    refuses(CPUS - 1, "CPU 8191 is not there, or this process may not run on it");

    /* A CPU that is there, but not given to this process, is not taken. */
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(last, &only);
    EXPECT(syscall(SYS_sched_setaffinity, 0, sizeof only, &only) == 0);
    for (unsigned cpu = 0; cpu < last; cpu++)
        if (node_has_cpu(&before, cpu))
            refuses(cpu, "may not run on it");
    return EXPECT_STATUS();
}
