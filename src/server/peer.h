/*
 * src/server/peer.h: which user is at the other end of a connection on this machine.
 *
 * Addresses tell nothing here: all clients are on loopback, and everybody has millions of addresses
 * there. The kernel knows whose socket it is.
 */
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#define SERVER_PEER_UNKNOWN ((uid_t)-1)

/* A descriptor to ask with; -1 if the kernel does not tell. */
int server_peer_open(void);
/* The user of the client with this address, connected to ours. */
uid_t server_peer_uid(int fd, const struct sockaddr *client, const struct sockaddr_storage *ours);
