/* SPDX-License-Identifier: MIT */
/*
 * tcp.h - a TCP connection, over which the examples hand each other names
 *
 * Any other means would do: a cookie and an address are 24 bytes.
 */
#ifndef EXAMPLE_TCP_H
#define EXAMPLE_TCP_H

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

/** A socket that listens on a port, or -1. */
static inline int tcp_listen(unsigned short port)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (sock < 0)
		return -1;
	setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(sock, (struct sockaddr *)&addr, sizeof(addr)) || listen(sock, 16)) {
		close(sock);
		return -1;
	}
	return sock;
}

/** A connection, or -1: nobody listens there for ten seconds. */
static inline int tcp_connect(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found;
	int sock = -1;

	if (getaddrinfo(host, port, &hints, &found))
		return -1;
	for (int tries = 0; sock < 0 && tries < 100; tries++) {
		sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (sock >= 0 && connect(sock, found->ai_addr, found->ai_addrlen)) {
			close(sock);
			sock = -1;
			usleep(100000);
		}
	}
	freeaddrinfo(found);
	return sock;
}

static inline bool tcp_send(int sock, const void *data, size_t len)
{
	return send(sock, data, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/** False: the other side has closed. */
static inline bool tcp_recv(int sock, void *data, size_t len)
{
	return recv(sock, data, len, MSG_WAITALL) == (ssize_t)len;
}

#endif /* EXAMPLE_TCP_H */
