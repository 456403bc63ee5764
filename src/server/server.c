/*
 * src/server/server.c: libmicrohttpd around handler.h: sockets, threads, limits, headers.
 *
 * Each connection has a thread, so a heavy request delays nobody else. What a client can make us
 * hold is bounded: connections, time per request, bytes of headers, and bytes of responses in
 * progress. No number of clients keeps another out (watchdog.h).
 */
#include "server/server.h"

#include <errno.h>
#include <malloc.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/api/known.h"
#include "server/handler.h"
#include "server/peer.h"
#include "server/sandbox.h"
#include "server/watchdog.h"

#define SERVER_HEAVY 4
#define SERVER_HEAVY_WAITING 16
#define SERVER_MAX_CONNECTIONS 256
/* Of one user. More than may wait for heavy ones, so that light ones do not. */
#define SERVER_MAX_WORKING 32
/* Connections that are being closed while others come. */
#define SERVER_RESERVE 256
#define SERVER_HURRIED_NS (3 * NS_PER_SEC)
#define SERVER_STACK_BYTES ((size_t)1 << 20)
#define SERVER_CONNECTION_BYTES ((size_t)32 << 10)
#define SERVER_IDLE_S 20U
#define SERVER_MAX_HELD ((size_t)256 << 20)
#define SERVER_MAX_HELD_BY_ONE (SERVER_MAX_HELD / 4)
#define SERVER_BACKLOG 128
#define SERVER_LARGE ((size_t)128 << 10)

struct server {
	struct MHD_Daemon *daemon;
	struct server_handler serve;
	struct server_watchdog *watchdog;
	int peers;	    /* asks whose a connection is */
	atomic_size_t held; /* bytes of responses in progress */
};

/* One request. */
struct exchange {
	bool seen; /* the headers have arrived and were accepted */
	size_t held;
	char uri[];
};

static const struct {
	const char *name;
	const char *value;
} server_headers[] = {
	{"Content-Security-Policy",
	 "default-src 'self'; img-src 'self' data:; style-src 'self'; object-src 'none'; "
	 "frame-ancestors 'none'; base-uri 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Vary", "Accept-Encoding"},
};

static void *on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	/* One byte more than allowed, to detect excess length. */
	size_t len = strnlen(uri, SERVER_MAX_URI + 1);
	struct exchange *x = calloc(1, sizeof(*x) + len + 1);

	(void)cls;
	(void)connection;
	if (x)
		memcpy(x->uri, uri, len);
	return x;
}

static struct server_watchdog_entry *entry_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/* Called by the thread that accepts, before the connection has one of its own. */
static struct server_watchdog_entry *watch(struct server *s, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *fd =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	const union MHD_ConnectionInfo *client =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	uid_t uid = client ? server_peer_uid(s->peers, client->client_addr, &s->serve.host.addr)
			   : SERVER_PEER_UNKNOWN;

	return fd ? server_watchdog_add(s->watchdog, fd->connect_fd, uid) : NULL;
}

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct server *s = cls;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		*socket_context = watch(s, connection);
	} else if (*socket_context) {
		server_watchdog_remove(s->watchdog, *socket_context);
		*socket_context = NULL;
	}
}

static void on_completed(void *cls, struct MHD_Connection *connection, void **request_context,
			 enum MHD_RequestTerminationCode code)
{
	struct exchange *x = *request_context;
	struct server_watchdog_entry *e = entry_of(connection);
	struct server *s = cls;
	size_t left = 0;

	(void)code;
	if (x)
		left = atomic_fetch_sub(&s->held, x->held) - x->held;
	/*
	 * A large response leaves many times its size in free memory, and we run for weeks: the
	 * last response in progress returns it to the system.
	 */
	if (x && x->held >= SERVER_LARGE && left < SERVER_LARGE)
		(void)malloc_trim(0);
	free(x);
	*request_context = NULL;
	/* The next request on this connection. */
	if (e) {
		server_watchdog_hold(s->watchdog, e, 0);
		server_watchdog_set(s->watchdog, e, SERVER_READING);
	}
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
	if (value)
		(void)MHD_add_response_header(response, name, value);
}

static void add_headers(struct MHD_Response *response, const struct server_answer *a)
{
	char text[320];

	for (size_t i = 0; i < ARRAY_SIZE(server_headers); i++)
		add_header(response, server_headers[i].name, server_headers[i].value);
	add_header(response, "Content-Type", a->type);
	add_header(response, "Cache-Control", a->cache);
	add_header(response, "ETag", a->etag);
	add_header(response, "Allow", a->allow);
	if (a->packed)
		add_header(response, "Content-Encoding", "gzip");
	if (a->retry_after_s) {
		(void)snprintf(text, sizeof(text), "%u", a->retry_after_s);
		add_header(response, "Retry-After", text);
	}
	if (a->file_name[0]) {
		(void)snprintf(text, sizeof(text), "attachment; filename=\"%s\"", a->file_name);
		add_header(response, "Content-Disposition", text);
	}
}

/* Passes the body to the library. */
static enum MHD_Result send_answer(struct server *s, struct exchange *x,
				   struct MHD_Connection *connection, struct server_answer *a)
{
	struct server_watchdog_entry *e = entry_of(connection);
	struct MHD_Response *response;
	enum MHD_Result result;

	response =
		MHD_create_response_from_buffer(a->body.len, a->body.data, MHD_RESPMEM_MUST_FREE);
	if (!response)
		return MHD_NO;
	x->held = a->body.len;
	atomic_fetch_add(&s->held, x->held);
	if (e)
		server_watchdog_hold(s->watchdog, e, x->held);
	a->body = (struct buf){0};
	add_headers(response, a);
	result = MHD_queue_response(connection, a->status, response);
	MHD_destroy_response(response);
	return result;
}

static const char *header_of(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

struct header_count {
	const char *name;
	size_t n;
};

/* The library takes "Host :" for another header; a proxy may not. */
static enum MHD_Result count_header(void *cls, enum MHD_ValueKind kind, const char *key,
				    size_t key_len, const char *value, size_t value_len)
{
	struct header_count *c = cls;
	size_t len = strlen(c->name);

	(void)kind;
	(void)value;
	(void)value_len;
	while (key_len > len && (key[key_len - 1] == ' ' || key[key_len - 1] == '\t'))
		key_len--;
	c->n += key && key_len == len && strncasecmp(key, c->name, len) == 0;
	return MHD_YES;
}

/* What says who asks must be said once: a proxy may have gone by the other one. */
static const char *only_header_of(struct MHD_Connection *connection, const char *name)
{
	struct header_count c = {.name = name};

	(void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, count_header, &c);
	return c.n > 1 ? "" : header_of(connection, name);
}

/* Headers as the library understood them. */
struct header_section {
	size_t bytes;
	bool has_control;
};

static bool has_control(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
			return true;
	return false;
}

/* Key and value stay where they were received: between them are a colon and blanks. */
static enum MHD_Result measure_header(void *cls, enum MHD_ValueKind kind, const char *key,
				      size_t key_len, const char *value, size_t value_len)
{
	struct header_section *h = cls;

	(void)kind;
	h->bytes += (uintptr_t)value - (uintptr_t)key + value_len + strlen("\r\n");
	h->has_control =
		h->has_control || has_control(key, key_len) || has_control(value, value_len);
	return MHD_YES;
}

/*
 * The library cuts texts at a NUL, takes a line that begins with one for the last, and joins folded
 * lines in its own way; a proxy before us reads something else. It tells none of that, but how much
 * it has received: what it tells must add up to that.
 */
static bool is_malformed(struct MHD_Connection *connection, const char *method, const char *uri,
			 const char *version)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
	struct header_section h = {.has_control =
					   has_control(uri, strlen(uri)) || strchr(uri, '\t')};

	(void)MHD_get_connection_values_n(connection, MHD_HEADER_KIND, measure_header, &h);
	return h.has_control || !info ||
	       info->header_size != strlen(method) + strlen(uri) + strlen(version) +
					    strlen("  \r\n") + h.bytes + strlen("\r\n");
}

static struct server_raw_request describe(struct MHD_Connection *connection, const char *method,
					  const char *version, const struct exchange *x)
{
	const char *length = header_of(connection, "Content-Length");

	return (struct server_raw_request){
		.method = method,
		.uri = x->uri,
		.malformed = is_malformed(connection, method, x->uri, version),
		.host = only_header_of(connection, "Host"),
		.origin = only_header_of(connection, "Origin"),
		.fetch_site = only_header_of(connection, "Sec-Fetch-Site"),
		.accept_encoding = header_of(connection, "Accept-Encoding"),
		.if_none_match = header_of(connection, "If-None-Match"),
		.has_body = (length && strcmp(length, "0") != 0) ||
			    header_of(connection, "Transfer-Encoding") != NULL,
	};
}

/* Of one user, or of all. */
static bool holds_too_much(struct server *s, const struct server_watchdog_entry *e)
{
	return atomic_load(&s->held) > SERVER_MAX_HELD ||
	       (e && server_watchdog_held(s->watchdog, e) > SERVER_MAX_HELD_BY_ONE);
}

static enum MHD_Result on_request(void *cls, struct MHD_Connection *connection, const char *url,
				  const char *method, const char *version, const char *upload_data,
				  size_t *upload_data_size, void **request_context)
{
	_cleanup_(server_answer_release) struct server_answer a = server_answer_new();
	struct server_watchdog_entry *e = entry_of(connection);
	struct exchange *x = *request_context;
	struct server *s = cls;
	struct server_raw_request rq;

	(void)url;
	(void)upload_data;
	(void)upload_data_size;
	if (!x)
		return MHD_NO;
	rq = describe(connection, method, version, x);
	if (!x->seen) {
		/*
		 * Responding now closes the connection, which is right only for refused requests.
		 */
		x->seen = server_check(&s->serve, &rq, &a);
		return x->seen ? MHD_YES : send_answer(s, x, connection, &a);
	}
	if (e && !server_watchdog_begin_work(s->watchdog, e))
		return MHD_NO;
	if (holds_too_much(s, e))
		server_answer_error(&a, -EBUSY,
				    &(struct err){.text = "too many responses in progress"});
	else
		server_respond(&s->serve, &rq, &a);
	if (e)
		server_watchdog_set(s->watchdog, e, SERVER_ANSWERING);
	return send_answer(s, x, connection, &a);
}

static int listen_failed(const struct server_host *host, int r, struct err *err)
{
	err_write(err, "cannot listen on %s:%u: %s", host->name, host->port, strerror(-r));
	if (r == -EADDRINUSE)
		err_write_remedy(
			err, ERR_CAUSE_BUSY,
			"is another sonde running? Otherwise use --listen with another port");
	return r;
}

static int listen_on(struct server_host *host, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct sockaddr_in6 addr = {0};
	socklen_t len = sizeof(addr);
	int one = 1;

	fd = socket(host->addr.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	/* A restart must not wait for old connections. */
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&host->addr, host->addr_len) < 0 ||
	    listen(fd, SERVER_BACKLOG) < 0)
		return listen_failed(host, -errno, err);
	if (getsockname(fd, (struct sockaddr *)&addr, &len) < 0)
		return err_set(err, -errno, "cannot determine the port: %s", strerror(errno));
	/* The IPv4 port is at the same offset. */
	host->port = ntohs(addr.sin6_port);
	memcpy(&host->addr, &addr, len);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

static int start_daemon(struct server *s, int fd, struct err *err)
{
	unsigned int flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION |
			     MHD_USE_POLL | MHD_USE_ITC;

	if (s->serve.host.addr.ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	s->daemon = MHD_start_daemon(
		flags, s->serve.host.port, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_THREAD_STACK_SIZE, SERVER_STACK_BYTES, MHD_OPTION_CONNECTION_LIMIT,
		SERVER_MAX_CONNECTIONS + SERVER_RESERVE, MHD_OPTION_CONNECTION_TIMEOUT,
		SERVER_IDLE_S, MHD_OPTION_CONNECTION_MEMORY_LIMIT, SERVER_CONNECTION_BYTES,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK, on_uri, s,
		MHD_OPTION_NOTIFY_COMPLETED, on_completed, s, MHD_OPTION_NOTIFY_CONNECTION,
		on_connection, s, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(err, -EIO, "cannot start the web server on %s:%u",
			       s->serve.host.name, s->serve.host.port);
	return 0;
}

/* In a thread of its own: the server's threads descend from it, and have what it has left. */
struct start {
	struct server *server;
	const struct server_watchdog_config *limits;
	int fd;
	uint64_t caps;
	int result;
	struct err *err;
};

static void *start_inside(void *arg)
{
	struct start *start = arg;
	struct server *s = start->server;

	start->result = server_sandbox_enter(start->caps, start->err);
	if (start->result == 0)
		start->result = server_watchdog_start(start->limits, &s->watchdog, start->err);
	if (start->result == 0)
		start->result = start_daemon(s, start->fd, start->err);
	return NULL;
}

static int start_threads(struct start *start)
{
	pthread_t thread;
	int r = pthread_create(&thread, NULL, start_inside, start);

	if (r)
		return err_set(start->err, -r, "cannot start a thread: %s", strerror(r));
	(void)pthread_join(thread, NULL);
	return start->result;
}

static uint64_t memory_kib(void)
{
	return (uint64_t)MAX(sysconf(_SC_PHYS_PAGES), 0) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

int server_start(const struct server_config *config, struct agent *agent, struct store *store,
		 struct server **ret_server, struct err *err)
{
	const struct server_watchdog_config limits = {
		.request_ns = config->request_ns ? config->request_ns : SERVER_WATCHDOG_NEVER,
		.answer_ns = config->answer_ns ? config->answer_ns : SERVER_WATCHDOG_NEVER,
		.hurried_ns = SERVER_HURRIED_NS,
		.max = SERVER_MAX_CONNECTIONS,
		.max_working = SERVER_MAX_WORKING,
	};
	_cleanup_(server_stopp) struct server *s = calloc(1, sizeof(*s));
	_cleanup_close_ int fd = -1;
	int r;

	if (!s)
		return err_oom(err);
	s->peers = server_peer_open();
	server_gate_init(&s->serve.gate, SERVER_HEAVY, SERVER_HEAVY_WAITING);
	s->serve.context = (struct server_context){
		.agent = agent,
		.store = store,
		.interval_ns = config->interval_ns,
		.started_ns = (int64_t)clock_unix_ns(),
		.cpus = (unsigned int)MAX(sysconf(_SC_NPROCESSORS_ONLN), 1),
		.memory_kib = memory_kib(),
		.known = server_known_new(),
	};
	if (!s->serve.context.known)
		return err_oom(err);
	r = server_host_parse(config->listen, &s->serve.host, err);
	if (r == 0)
		r = listen_on(&s->serve.host, &fd, err);
	if (r == 0)
		r = start_threads(&(struct start){.server = s,
						  .limits = &limits,
						  .fd = fd,
						  .caps = config->keep_caps,
						  .err = err});
	if (r < 0)
		return r;
	/* The library closes it. */
	(void)TAKE_FD(fd);
	*ret_server = TAKE_PTR(s);
	return 0;
}

uint16_t server_port(const struct server *server)
{
	return server->serve.host.port;
}

void server_stop(struct server *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	server_watchdog_stop(server->watchdog);
	server_gate_release(&server->serve.gate);
	server_known_free(server->serve.context.known);
	closep(&server->peers);
	free(server);
}
