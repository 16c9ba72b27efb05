// SPDX-License-Identifier: GPL-2.0
/*
 * testbed-agent: runs shell commands in another domain of the emulated host.
 *
 *   testbed-agent serve PORT
 *   testbed-agent exec [-p PORT] [-t SECONDS] [-u UID:GID[:GROUP...]] [-n] HOST COMMAND...
 *
 * The server runs in every domain and sleeps in accept() or poll(), so it costs
 * nothing while nobody calls. The client carries standard input, output and error
 * unchanged and ends with the command's exit status: 128+N if signal N ended it,
 * 124 if the time limit was reached, 125 if the other side could not be reached or
 * was lost. When the client goes away, for whatever reason, the server kills the
 * command's process group.
 *
 * Protocol: frames of one type byte and a 32-bit length (this is one machine, so in
 * host order), then the payload.
 *   client: C "uid:gid:groups\0command"  I stdin (length 0: end of file)
 *   server: O stdout  E stderr  X exit status, one byte
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PORT 7
#define CHUNK 65536
#define STATUS_TIMEOUT 124
#define STATUS_LOST 125

static void die(const char *what)
{
	fprintf(stderr, "testbed-agent: %s: %s\n", what, strerror(errno));
	exit(STATUS_LOST);
}

static int write_all(int fd, const void *data, size_t len)
{
	const char *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0) {
			struct pollfd w = { .fd = fd, .events = POLLOUT };

			if (errno == EINTR)
				continue;
			if (errno != EAGAIN)
				return -1;
			poll(&w, 1, -1);
			continue;
		}
		p += n;
		len -= n;
	}
	return 0;
}

static int read_all(int fd, void *data, size_t len)
{
	char *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		len -= n;
	}
	return 0;
}

static int send_frame(int fd, char type, const void *data, uint32_t len)
{
	static char buf[5 + CHUNK];

	/* One write a frame, so that a small answer is one packet. */
	buf[0] = type;
	memcpy(buf + 1, &len, 4);
	memcpy(buf + 5, data, len);
	return write_all(fd, buf, 5 + len);
}

/* Returns the type, or -1 at the end of the connection. */
static int read_frame(int fd, char *data, uint32_t *len)
{
	char head[5];

	if (read_all(fd, head, sizeof(head)))
		return -1;
	memcpy(len, head + 1, 4);
	if (*len > CHUNK || read_all(fd, data, *len))
		return -1;
	return (unsigned char)head[0];
}

/* Become "uid:gid:group:group..." and run the command; never returns. */
static void run_command(char *ids, const char *command)
{
	gid_t groups[16];
	int n = 0;
	uid_t uid = strtoul(ids, &ids, 10);
	gid_t gid = *ids == ':' ? strtoul(ids + 1, &ids, 10) : uid;

	while (*ids == ':' && n < 16)
		groups[n++] = strtoul(ids + 1, &ids, 10);
	if (setgroups(n, groups) || setgid(gid) || setuid(uid))
		die("cannot change user");
	setenv("HOME", uid ? "/home/user" : "/root", 1);
	setenv("USER", uid == 0 ? "root" : uid == 1000 ? "user" : "other", 1);
	if (chdir(getenv("HOME")) && chdir("/"))
		die("chdir");
	execl("/bin/sh", "sh", "-c", command, NULL);
	die("/bin/sh");
}

struct stream {
	int fd;
	char type;
};

/* Pass on what can be read now; closes the stream at its end. */
static int forward(int sock, struct stream *s)
{
	static char buf[CHUNK];
	ssize_t n = read(s->fd, buf, sizeof(buf));

	if (n > 0)
		return send_frame(sock, s->type, buf, n);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	close(s->fd);
	s->fd = -1;
	return 0;
}

static void serve_one(int sock)
{
	static char data[CHUNK + 1];
	struct stream out[2] = { { .type = 'O' }, { .type = 'E' } };
	int in[2], o[2], e[2], sigfd, status, one = 1;
	uint32_t len, pending = 0, done = 0;
	unsigned char code;
	sigset_t set;
	pid_t child;

	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (read_frame(sock, data, &len) != 'C')
		exit(1);
	data[len] = 0;
	if (pipe2(in, O_CLOEXEC) || pipe2(o, O_CLOEXEC) || pipe2(e, O_CLOEXEC))
		die("pipe");
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigfd = signalfd(-1, &set, SFD_CLOEXEC);

	child = fork();
	if (child < 0)
		die("fork");
	if (!child) {
		setsid();
		sigprocmask(SIG_UNBLOCK, &set, NULL);
		/* What a shell ignores in its background jobs is not for the command. */
		signal(SIGPIPE, SIG_DFL);
		signal(SIGINT, SIG_DFL);
		signal(SIGQUIT, SIG_DFL);
		dup2(in[0], 0);
		dup2(o[1], 1);
		dup2(e[1], 2);
		run_command(data, data + strlen(data) + 1);
	}
	close(in[0]);
	close(o[1]);
	close(e[1]);
	out[0].fd = o[0];
	out[1].fd = e[0];
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	fcntl(o[0], F_SETFL, O_NONBLOCK);
	fcntl(e[0], F_SETFL, O_NONBLOCK);

	for (;;) {
		/* While input waits for a slow command, only the loss of the client is looked for. */
		struct pollfd p[5] = {
			{ .fd = sock, .events = pending ? POLLRDHUP : POLLIN },
			{ .fd = out[0].fd, .events = POLLIN },
			{ .fd = out[1].fd, .events = POLLIN },
			{ .fd = sigfd, .events = POLLIN },
			{ .fd = pending ? in[1] : -1, .events = POLLOUT },
		};

		if (poll(p, 5, -1) < 0 && errno != EINTR)
			goto lost;
		if ((p[1].revents && forward(sock, &out[0])) ||
		    (p[2].revents && forward(sock, &out[1])))
			goto lost;
		if (pending && p[0].revents)
			goto lost;
		if (p[0].revents) {
			if (read_frame(sock, data, &len) != 'I')
				goto lost;
			if (!len && in[1] >= 0) {
				close(in[1]);
				in[1] = -1;
			}
			pending = in[1] >= 0 ? len : 0;
			done = 0;
		}
		if (pending) {
			ssize_t n = write(in[1], data + done, pending);

			if (n > 0) {
				done += n;
				pending -= n;
			} else if (errno != EAGAIN && errno != EINTR) {
				/* The command reads no more; that is its affair. */
				close(in[1]);
				in[1] = -1;
				pending = 0;
			}
		}
		if (p[3].revents && waitpid(child, &status, WNOHANG) == child)
			break;
	}
	/*
	 * The command has ended. What it wrote is in the pipes; what a process that it
	 * left in the background will write later is not waited for.
	 */
	for (int i = 0; i < 2; i++) {
		while (out[i].fd >= 0) {
			struct pollfd p = { .fd = out[i].fd, .events = POLLIN };

			if (poll(&p, 1, 0) <= 0)
				break;
			if (forward(sock, &out[i]))
				exit(1);
		}
	}
	code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	send_frame(sock, 'X', &code, 1);
	exit(0);
lost:
	kill(-child, SIGKILL);
	exit(1);
}

static void serve(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(s, (void *)&a, sizeof(a)) || listen(s, 64))
		die("listen");
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int c = accept4(s, NULL, NULL, SOCK_CLOEXEC);

		if (c < 0)
			continue;
		if (fork() == 0) {
			close(s);
			serve_one(c);
		}
		close(c);
	}
}

/* /etc/hosts, read by hand: the C library's resolver cannot be linked statically. */
static in_addr_t look_up(const char *name)
{
	in_addr_t addr = inet_addr(name);
	FILE *f = fopen("/etc/hosts", "r");
	char line[256];

	while (addr == INADDR_NONE && f && fgets(line, sizeof(line), f)) {
		char *save, *ip = strtok_r(line, " \t\n", &save), *word;

		while (ip && (word = strtok_r(NULL, " \t\n", &save)))
			if (!strcmp(word, name))
				addr = inet_addr(ip);
	}
	if (f)
		fclose(f);
	return addr;
}

static int exec_remote(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	const struct linger abort = { .l_onoff = 1, .l_linger = 0 };
	static char data[CHUNK], input[5 + CHUNK];
	uint32_t len, pending = 0, done = 0;
	const char *ids = "0:0";
	int port = DEFAULT_PORT, limit = 0, in = 0, c, s, one = 1;
	long long deadline = 0;
	struct timespec now;

	while ((c = getopt(argc, argv, "+p:t:u:n")) != -1) {
		switch (c) {
		case 'p':
			port = atoi(optarg);
			break;
		case 't':
			limit = atoi(optarg);
			break;
		case 'u':
			ids = optarg;
			break;
		case 'n':
			in = -1;
			break;
		default:
			return STATUS_LOST;
		}
	}
	if (argc - optind < 2) {
		fprintf(stderr, "testbed-agent: exec needs a host and a command\n");
		return STATUS_LOST;
	}
	a.sin_addr.s_addr = look_up(argv[optind]);
	a.sin_port = htons(port);
	if (a.sin_addr.s_addr == INADDR_NONE) {
		fprintf(stderr, "testbed-agent: no domain %s\n", argv[optind]);
		return STATUS_LOST;
	}
	if (limit) {
		/* Covers the connect too: a dead guest answers nothing at all. */
		struct timeval tv = { .tv_sec = limit };

		clock_gettime(CLOCK_MONOTONIC, &now);
		deadline = now.tv_sec * 1000LL + now.tv_nsec / 1000000 + limit * 1000LL;
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	} else {
		s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	signal(SIGPIPE, SIG_IGN);
	/* However we end, the server must notice at once: a reset overtakes unread input. */
	setsockopt(s, SOL_SOCKET, SO_LINGER, &abort, sizeof(abort));
	if (connect(s, (void *)&a, sizeof(a))) {
		if (errno == EINPROGRESS || errno == ETIMEDOUT)
			return STATUS_TIMEOUT;
		die(argv[optind]);
	}
	setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

	len = snprintf(data, sizeof(data), "%s", ids) + 1;
	for (int i = optind + 1; i < argc; i++) {
		size_t n = strlen(argv[i]);

		if (len + n + 2 > sizeof(data)) {
			fprintf(stderr, "testbed-agent: command too long\n");
			return STATUS_LOST;
		}
		memcpy(data + len, argv[i], n);
		len += n;
		data[len++] = ' ';
	}
	data[len - 1] = 0;
	if (send_frame(s, 'C', data, len - 1) || (in < 0 && send_frame(s, 'I', "", 0)))
		die(argv[optind]);

	for (;;) {
		/* Never blocks in sending: the other side may be blocked in sending to us. */
		struct pollfd p[2] = {
			{ .fd = s, .events = POLLIN | (pending ? POLLOUT : 0) },
			{ .fd = pending ? -1 : in, .events = POLLIN },
		};
		int left = -1, n;

		if (limit) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			left = deadline - (now.tv_sec * 1000LL + now.tv_nsec / 1000000);
			if (left <= 0)
				return STATUS_TIMEOUT;
		}
		n = poll(p, 2, left);
		if (n < 0 && errno != EINTR)
			die("poll");
		if (n <= 0)
			continue;
		if (p[0].revents & POLLOUT) {
			ssize_t r = send(s, input + done, pending, MSG_DONTWAIT);

			if (r > 0) {
				done += r;
				pending -= r;
			} else if (r < 0 && errno != EAGAIN && errno != EINTR) {
				/* The command ended and its side closed: the status is on its way. */
				pending = 0;
				in = -1;
			}
		}
		if (p[0].revents & ~POLLOUT) {
			switch (read_frame(s, data, &len)) {
			case 'O':
				if (write_all(1, data, len))
					return STATUS_LOST;
				break;
			case 'E':
				if (write_all(2, data, len))
					return STATUS_LOST;
				break;
			case 'X':
				return (unsigned char)data[0];
			default:
				fprintf(stderr, "testbed-agent: connection to %s lost\n",
					argv[optind]);
				return STATUS_LOST;
			}
		}
		if (p[1].revents) {
			ssize_t r = read(in, input + 5, CHUNK);

			if (r <= 0) {
				r = 0;
				in = -1;
			}
			len = r;
			input[0] = 'I';
			memcpy(input + 1, &len, 4);
			pending = 5 + len;
			done = 0;
		}
	}
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(atoi(argv[2]));
	if (argc > 1 && !strcmp(argv[1], "exec"))
		return exec_remote(argc - 1, argv + 1);
	fprintf(stderr, "usage: testbed-agent serve PORT | exec [options] HOST COMMAND...\n");
	return STATUS_LOST;
}
