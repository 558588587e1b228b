/*
 * Limits a server to the packets of one peer.
 *
 * Benchmark servers such as iperf3 serve whoever connects first. Preloaded (LD_PRELOAD) into one, this library attaches a
 * packet filter to every Internet socket that the program binds or listens with. The kernel then drops every packet that
 * is not from the address in PLIMSOLL_ACCEPT: to all others the port looks like a host that does not answer. Accepted
 * connections inherit the filter. No right is needed for it.
 *
 * The program does not start without that address, and ends if the filter cannot be attached. When it listens, the
 * library prints `accepting only ADDRESS`, so that whoever starts it sees that the filter is in place.
 *
 * Source of the filter's format: Linux, Documentation/networking/filter.rst. Its loads from SKF_NET_OFF read the network
 * header; an IPv6 socket that also takes IPv4 gets packets of both versions.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { IPV4_SOURCE = 12, IPV6_SOURCE = 8, IPV6_WORDS = 4, NETWORK = SKF_NET_OFF };

static const char *peer;
static struct sock_filter code[16];
static struct sock_fprog filter = {.filter = code};

static void fail(const char *problem) {
    dprintf(STDERR_FILENO, "accept: %s\n", problem);
    _exit(EXIT_FAILURE);
}

static void add(struct sock_filter instruction) {
    code[filter.len++] = instruction;
}

/* Continue if the loaded value is `wanted`; otherwise go to the last instruction, which drops. */
static void require(unsigned int wanted, unsigned int last) {
    struct sock_filter jump = BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, wanted, 0, (unsigned char)(last - filter.len - 1));
    add(jump);
}

static void build(unsigned int version, int source, const unsigned char *address, unsigned int words) {
    /* Version, words, accept, drop. */
    const unsigned int last = 3 + 2 * words + 1;
    add((struct sock_filter)BPF_STMT(BPF_LD | BPF_B | BPF_ABS, (unsigned int)NETWORK));
    add((struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0));
    require(version << 4, last);
    for (unsigned int word = 0; word < words; word++) {
        unsigned int wanted;
        memcpy(&wanted, address + 4 * word, sizeof wanted);
        add((struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned int)(NETWORK + source) + 4 * word));
        require(ntohl(wanted), last);
    }
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0xffffffff));
    add((struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0));
}

__attribute__((constructor)) static void start(void) {
    unsigned char address[sizeof(struct in6_addr)];
    peer = getenv("PLIMSOLL_ACCEPT");
    if (peer == NULL)
        fail("PLIMSOLL_ACCEPT is not set");
    else if (inet_pton(AF_INET, peer, address) == 1)
        build(4, IPV4_SOURCE, address, 1);
    else if (inet_pton(AF_INET6, peer, address) == 1)
        build(6, IPV6_SOURCE, address, IPV6_WORDS);
    else
        fail("PLIMSOLL_ACCEPT is not an address");
}

static void *original(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        fail("the C library is unknown");
    return found;
}

static void limit(int socket) {
    int domain;
    socklen_t length = sizeof domain;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &domain, &length) != 0)
        return; /* Not a socket: the call itself reports that. */
    if (domain != AF_INET && domain != AF_INET6)
        return;
    if (setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) != 0)
        fail("the kernel refuses the packet filter");
}

int bind(int socket, const struct sockaddr *address, socklen_t length) {
    int (*call)(int, const struct sockaddr *, socklen_t) = original("bind");
    limit(socket);
    return call(socket, address, length);
}

int listen(int socket, int backlog) {
    int (*call)(int, int) = original("listen");
    limit(socket);
    int result = call(socket, backlog);
    if (result == 0)
        dprintf(STDOUT_FILENO, "accepting only %s\n", peer);
    return result;
}
