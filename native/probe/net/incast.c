#include "probe/net/incast.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/lines.h"
#include "core/watchdog.h"
#include "probe/net/socket.h"

int incast_ask(const struct net_links *links, struct failure *failure) {
    const unsigned char word = 1;
    for (size_t i = 0; i < links->count; i++)
        if (net_send(links->each[i].tcp, &word, 1, links->each[i].peer, failure) != 0)
            return -1;
    return 0;
}

int incast_await(const struct net_link *link, struct failure *failure) {
    unsigned char word;
    return net_receive(link->tcp, &word, 1, link->peer, failure);
}

void incast_note(struct visit *visit, uint64_t time_ns, bool whole) {
    if (visit->times_ns != NULL)
        visit->times_ns[visit->timed] = time_ns;
    visit->total_ns += time_ns;
    visit->timed++;
    visit->lost += !whole;
    watchdog_beat();
}

int incast_report(const struct visit *visit, const char *op, const uint64_t *times_ns,
                  const uint64_t *arrived, const uint64_t *again, struct failure *failure) {
    const struct net_links *links = visit->link;
    const size_t iterations = (size_t)visit->iterations;
    struct record record = {0};
    record_begin(&record, "incast");
    record_pair_string(&record, "op", op);
    record_pair_unsigned(&record, "size", visit->size);
    record_pair_unsigned(&record, "visit", visit->number);
    record_pair_unsigned(&record, "senders", links->count);
    record_wholes(&record, "times_ns", times_ns, iterations);
    record_wholes(&record, "arrived", arrived, arrived == NULL ? 0 : iterations);
    record_wholes(&record, "again", again, again == NULL ? 0 : links->count);
    if (line_write(&record, STDOUT_FILENO) == 0)
        return 0;
    return failure_set(failure, "system", "", "cannot write to standard output: %s", strerror(errno));
}
