/* IPv4 and IPv6 addresses in one representation, and networks of them. */
#ifndef BASE_IP_H
#define BASE_IP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

struct sockaddr;

struct ip {
    uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
};

struct cidr {
    struct ip network;
    int bits; /* of the 128 */
};

#define IP_TEXT_MAX 46

enum err ip_parse(struct str text, struct ip *ret) MUST_CHECK; /* "192.0.2.1", "2001:db8::1", "[2001:db8::1]" */
struct ip ip_of_sockaddr(const struct sockaddr *address);      /* all zero for a unix socket */
bool ip_is_v4(const struct ip *ip);
void ip_format(const struct ip *ip, char into[IP_TEXT_MAX]);
/* The unit that rate limits apply to: the address itself for IPv4, its /64 for IPv6. */
struct ip ip_network(const struct ip *ip);
/* What one IPv6 customer is assigned at most: its /48. An IPv4 address is itself. */
struct ip ip_site(const struct ip *ip);

enum err cidr_parse(struct str text,
                    struct cidr *ret) MUST_CHECK; /* "10.0.0.0/8"; an address alone is a network of one address */
bool cidr_holds(const struct cidr *net, const struct ip *ip);

#endif
