/* wulf-delay: a cable that holds every frame back for a fixed time, in both directions.
 *
 *     wulf-delay INTERFACE TAP DELAY_NS [BACK_NS]
 *
 * Frames that come in at INTERFACE leave by TAP, a device that is made here, and the other way round: the TAP
 * is plugged into a switch in the place of INTERFACE. BACK_NS is for frames that come in at INTERFACE, where
 * they are held for another time. For kernels without netem. It ends with either device.
 *
 * Frames stay as they are, those larger than the MTU that a card would cut up and those without a checksum
 * included: what the kernel notes of these (struct virtio_net_hdr) goes with them. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/failure.h"
#include "core/number.h"

enum {
    FRAME_MOST = 1 << 17, /* with all that the kernel puts together, and what it notes of it */
    HELD_MOST = 1024,     /* frames in one direction: more are lost, as in any full queue */
    AT_A_TIME = 64,       /* frames that are taken before due ones go on */
};
static const uint64_t NS_PER_S = 1000000000U;

struct frame {
    uint64_t due_ns;
    size_t bytes;
    unsigned char data[FRAME_MOST];
};

/* One direction: frames in the order in which they came, which is the order in which they are due. */
struct direction {
    int from, to;
    uint64_t delay_ns;
    struct frame
        *frames; /* HELD_MOST and one to read lost ones into; pages that nothing needs are not there */
    size_t first, held;
};

static struct frame *oldest(const struct direction *way) { return &way->frames[way->first]; }

/* Take what has come; -1 when the device is gone. */
static int take(struct direction *way) {
    for (int i = 0; i < AT_A_TIME; i++) {
        const bool is_full = way->held == HELD_MOST;
        struct frame *const frame = &way->frames[is_full ? HELD_MOST : (way->first + way->held) % HELD_MOST];
        const ssize_t got = read(way->from, frame->data, sizeof frame->data);
        if (got < 0)
            return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : -1;
        frame->due_ns = clock_now_ns() + way->delay_ns;
        frame->bytes = (size_t)got;
        way->held += is_full ? 0 : 1;
    }
    return 0;
}

/* Send what is due on; -1 when the device is gone. A frame that it does not take is lost. */
static int give(struct direction *way) {
    while (way->held > 0 && oldest(way)->due_ns <= clock_now_ns()) {
        const ssize_t gave = write(way->to, oldest(way)->data, oldest(way)->bytes);
        if (gave < 0 && (errno == ENODEV || errno == ENXIO || errno == EBADFD))
            return -1;
        way->first = (way->first + 1) % HELD_MOST;
        way->held--;
    }
    return 0;
}

static struct timespec until_due(const struct direction *ways, size_t count) {
    uint64_t due_ns = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (ways[i].held > 0 && oldest(&ways[i])->due_ns < due_ns)
            due_ns = oldest(&ways[i])->due_ns;
    const uint64_t now_ns = clock_now_ns();
    uint64_t wait_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    wait_ns = wait_ns < NS_PER_S ? wait_ns : NS_PER_S;
    return (struct timespec){.tv_sec = (time_t)(wait_ns / NS_PER_S), .tv_nsec = (long)(wait_ns % NS_PER_S)};
}

static void forward(struct direction ways[2]) {
    struct pollfd waiting[] = {{.fd = ways[0].from, .events = POLLIN},
                               {.fd = ways[1].from, .events = POLLIN}};
    for (;;) {
        const struct timespec wait = until_due(ways, 2);
        if (ppoll(waiting, 2, &wait, NULL) < 0 && errno != EINTR)
            return;
        for (size_t i = 0; i < 2; i++)
            if (take(&ways[i]) != 0 || give(&ways[i]) != 0)
                return;
    }
}

/* --- the two devices ------------------------------------------------------------------------------------ */

static int open_interface(const char *name, struct failure *failure) {
    const int yes = 1;
    const int socket_ = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0)
        return failure_set(failure, "device", "", "no packet socket: %s", strerror(errno));
    const unsigned index = if_nametoindex(name);
    const struct sockaddr_ll all = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    const struct packet_mreq promiscuous = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    const int buffer = 4 << 20;
    setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof buffer);
    if (index == 0 || setsockopt(socket_, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) != 0 ||
        setsockopt(socket_, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes) != 0 ||
        setsockopt(socket_, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promiscuous, sizeof promiscuous) != 0 ||
        bind(socket_, (const struct sockaddr *)&all, sizeof all) != 0)
        return failure_set(failure, "device", name, "%s", strerror(errno));
    return socket_;
}

static int open_tap(const char *name, struct failure *failure) {
    struct ifreq asked = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    snprintf(asked.ifr_name, sizeof asked.ifr_name, "%s", name);
    const int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0 || ioctl(tap, TUNSETIFF, &asked) != 0 ||
        ioctl(tap, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6 | TUN_F_TSO_ECN) != 0)
        return failure_set(failure, "device", name, "%s", strerror(errno));
    return tap;
}

/* A frame must not wait for a program's time slice to end. */
static void be_prompt(void) {
    const struct sched_param first = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &first) != 0)
        fprintf(stderr, "wulf-delay: frames may be late: %s\n", strerror(errno));
}

int main(int count, char **words) {
    struct failure failure = {0};
    uint64_t delay_ns = 0;
    uint64_t back_ns = 0;
    const char *const back = count == 5 ? words[4] : words[3];
    if (count < 4 || count > 5 || number_parse(words[3], strlen(words[3]), &delay_ns) != 0 ||
        number_parse(back, strlen(back), &back_ns) != 0) {
        fprintf(stderr, "usage: wulf-delay INTERFACE TAP DELAY_NS [BACK_NS]\n");
        return USAGE_EXIT;
    }
    const int interface = open_interface(words[1], &failure);
    const int tap = interface < 0 ? -1 : open_tap(words[2], &failure);
    struct frame *const frames = tap < 0 ? NULL : malloc((size_t)2 * (HELD_MOST + 1) * sizeof *frames);
    if (frames == NULL) {
        fprintf(stderr, "wulf-delay: %s: %s\n", failure.peer, tap < 0 ? failure.message : "no memory");
        return FAILURE_EXIT;
    }
    struct direction ways[] = {
        {.from = interface, .to = tap, .delay_ns = back_ns, .frames = frames},
        {.from = tap, .to = interface, .delay_ns = delay_ns, .frames = frames + HELD_MOST + 1}};
    be_prompt();
    forward(ways);
    free(frames);
    return 0;
}
