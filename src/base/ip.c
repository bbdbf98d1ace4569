#include "base/ip.h"

#include <arpa/inet.h>
#include <string.h>

static const uint8_t v4_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

enum err ip_parse(struct str text, struct ip *ret)
{
    char z[IP_TEXT_MAX];
    if (text.len >= 2 && text.at[0] == '[' && text.at[text.len - 1] == ']') {
        text.at++;
        text.len -= 2;
        if (!memchr(text.at, ':', text.len))
            return ERR_INPUT;
    }
    if (!text.at || str_copy(text, z, sizeof z))
        return ERR_INPUT;

    struct ip ip;
    memcpy(ip.bytes, v4_prefix, sizeof v4_prefix);
    if (inet_pton(AF_INET, z, ip.bytes + 12) != 1 && inet_pton(AF_INET6, z, ip.bytes) != 1)
        return ERR_INPUT;
    *ret = ip;
    return OK;
}

struct ip ip_of_sockaddr(const struct sockaddr *address)
{
    struct ip ip = {{0}};
    if (address->sa_family == AF_INET) {
        memcpy(ip.bytes, v4_prefix, sizeof v4_prefix);
        memcpy(ip.bytes + 12, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
    } else if (address->sa_family == AF_INET6) {
        memcpy(ip.bytes, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
    }
    return ip;
}

bool ip_is_v4(const struct ip *ip)
{
    return memcmp(ip->bytes, v4_prefix, sizeof v4_prefix) == 0;
}

void ip_format(const struct ip *ip, char into[IP_TEXT_MAX])
{
    if (ip_is_v4(ip))
        inet_ntop(AF_INET, ip->bytes + 12, into, IP_TEXT_MAX);
    else
        inet_ntop(AF_INET6, ip->bytes, into, IP_TEXT_MAX);
}

struct ip ip_network(const struct ip *ip)
{
    struct ip near = *ip;
    if (!ip_is_v4(ip))
        memset(near.bytes + 8, 0, 8);
    return near;
}

struct ip ip_site(const struct ip *ip)
{
    struct ip site = *ip;
    if (!ip_is_v4(ip))
        memset(site.bytes + 6, 0, 10);
    return site;
}

enum err cidr_parse(struct str text, struct cidr *ret)
{
    struct str bits_text = text, address;
    if (!str_split(&bits_text, '/', &address))
        return ERR_INPUT;

    struct cidr net;
    enum err e = ip_parse(address, &net.network);
    if (e)
        return e;
    int64_t most = ip_is_v4(&net.network) && !memchr(address.at, ':', address.len) ? 32 : 128;
    int64_t bits = most;
    if (address.len < text.len && (e = str_to_i64(bits_text, 0, most, &bits)))
        return e;
    net.bits = (int)(bits + 128 - most);

    struct ip all = net.network;
    for (int i = net.bits; i < 128; i++)
        all.bytes[i / 8] &= (uint8_t) ~(0x80 >> (i % 8));
    if (memcmp(&all, &net.network, sizeof all) != 0) /* "10.1.2.3/8" is probably a mistake */
        return ERR_INPUT;
    *ret = net;
    return OK;
}

bool cidr_holds(const struct cidr *net, const struct ip *ip)
{
    int whole = net->bits / 8, rest = net->bits % 8;
    if (memcmp(net->network.bytes, ip->bytes, (size_t)whole) != 0)
        return false;
    return rest == 0 || ((net->network.bytes[whole] ^ ip->bytes[whole]) >> (8 - rest)) == 0;
}
