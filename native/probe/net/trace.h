/* Which way flows take: packets with their addresses and ports whose time to live is over at the first
 * switch, at the second, and so on; each of these says so (ICMP). It takes no right of root: the kernel hands
 * such messages to the socket that the packet was from. */
#ifndef WULF_NET_TRACE_H
#define WULF_NET_TRACE_H

#define TRACE_WORD "--trace"

/* The program with `--trace` as its first option. The exit code. */
int trace_main(int argc, char **argv);

#endif
