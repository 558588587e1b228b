/*
 * Limits a server to one peer.
 *
 * Benchmark servers such as iperf3 serve whoever connects first. Preloaded (LD_PRELOAD) into one, this library hands it
 * only connections and datagrams from the address in PLIMSOLL_ACCEPT, and closes all others before the program sees a byte
 * of them. No right is needed for it: a packet filter in the kernel would refuse others earlier, but some kernels let
 * only privileged processes attach one.
 *
 * The program does not start without that address. When it listens, the library prints `accepting only ADDRESS`, so that
 * whoever starts it sees that the limit is in place.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *text;
static struct in6_addr peer; /* IPv4 as ::ffff:a.b.c.d */
static bool has_served;

static void fail(const char *problem) {
    dprintf(STDERR_FILENO, "accept: %s\n", problem);
    _exit(EXIT_FAILURE);
}

static void map(struct in6_addr *mapped, const void *ipv4) {
    memset(mapped, 0, sizeof *mapped);
    memset(mapped->s6_addr + 10, 0xff, 2);
    memcpy(mapped->s6_addr + 12, ipv4, sizeof(struct in_addr));
}

__attribute__((constructor)) static void start(void) {
    struct in_addr ipv4;
    text = getenv("PLIMSOLL_ACCEPT");
    if (text == NULL)
        fail("PLIMSOLL_ACCEPT is not set");
    else if (inet_pton(AF_INET, text, &ipv4) == 1)
        map(&peer, &ipv4);
    else if (inet_pton(AF_INET6, text, &peer) != 1)
        fail("PLIMSOLL_ACCEPT is not an address");
}

static void *original(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        fail("the C library is unknown");
    return found;
}

/* Whether an address is the peer's, or not one of the Internet. */
static bool is_welcome(const struct sockaddr_storage *from) {
    struct in6_addr found;
    if (from->ss_family == AF_INET)
        map(&found, &((const struct sockaddr_in *)from)->sin_addr);
    else if (from->ss_family == AF_INET6)
        found = ((const struct sockaddr_in6 *)from)->sin6_addr;
    else
        return true;
    return memcmp(&found, &peer, sizeof peer) == 0;
}

/*
 * Before the peer has connected, the program waits for nothing else, so strangers are closed here. Later it may be in the
 * middle of a measurement: then it gets a stranger's connection, already shut down, which it takes for one that broke.
 */
static int admit(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    int (*call)(int, struct sockaddr *, socklen_t *, int) = original("accept4");
    for (;;) {
        const socklen_t room = length == NULL ? 0 : *length;
        int connection = call(listener, address, length, flags);
        if (connection < 0)
            return connection;
        struct sockaddr_storage from = {0};
        socklen_t size = sizeof from;
        if (getpeername(connection, (struct sockaddr *)&from, &size) == 0 && is_welcome(&from)) {
            has_served = true;
            return connection;
        }
        if (has_served) {
            shutdown(connection, SHUT_RDWR);
            return connection;
        }
        close(connection);
        if (length != NULL)
            *length = room;
    }
}

int accept(int listener, struct sockaddr *address, socklen_t *length) {
    return admit(listener, address, length, 0);
}

int accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    return admit(listener, address, length, flags);
}

/* A server of datagrams connects its socket to whoever sends the first one. */
static ssize_t receive(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length) {
    ssize_t (*call)(int, void *, size_t, int, struct sockaddr *, socklen_t *) = original("recvfrom");
    for (;;) {
        struct sockaddr_storage from = {0};
        socklen_t known = sizeof from;
        ssize_t received = call(socket, buffer, size, flags, (struct sockaddr *)&from, &known);
        if (received < 0)
            return received;
        /* A connected stream names no sender. */
        if (known > 0 && !is_welcome(&from))
            continue;
        if (address != NULL && length != NULL) {
            memcpy(address, &from, known < *length ? known : *length);
            *length = known;
        }
        return received;
    }
}

ssize_t recvfrom(int socket, void *buffer, size_t size, int flags, struct sockaddr *address, socklen_t *length) {
    return receive(socket, buffer, size, flags, address, length);
}

/* What a program built with checks of its buffers calls instead. */
ssize_t __recvfrom_chk(int socket, void *buffer, size_t size, size_t room, int flags, struct sockaddr *address,
                       socklen_t *length) {
    if (size > room)
        fail("a datagram would overflow its buffer");
    return receive(socket, buffer, size, flags, address, length);
}

int listen(int socket, int backlog) {
    int (*call)(int, int) = original("listen");
    int result = call(socket, backlog);
    if (result == 0)
        dprintf(STDOUT_FILENO, "accepting only %s\n", text);
    return result;
}
