/* Cookies of pages. `/auth`, `/v1`, `/functions` and `/gate` never read them. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/seal.h"
#include "pages/page.h"

#define STATE_MAX ((size_t)2400) /* browsers keep 4,096 bytes of a cookie, name and attributes included */
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

static const char *full_name(struct page *p, const char *name)
{
    return arena_printf(p->rq->arena, "%sreclaim_%s", p->pages->https ? "__Host-" : "", name).at;
}

struct str cookie_read(struct page *p, const char *name)
{
    const char *full = full_name(p, name);
    return full ? request_cookie(p->rq, full) : (struct str){NULL, 0};
}

void cookie_write(struct page *p, const char *name, const char *value, int64_t life_s, bool for_scripts)
{
    const char *full = full_name(p, name);
    reply_header(p->rq, "Set-Cookie",
                 arena_printf(p->rq->arena, "%s=%s; Path=/; Max-Age=%lld; SameSite=Lax%s%s", full ? full : "", value,
                              (long long)life_s, for_scripts ? "" : "; HttpOnly", p->pages->https ? "; Secure" : "")
                     .at);
}

static void free_json(void *json)
{
    json_decref(json);
}

/* {"until": seconds since 1970, "state": {…}} */
json_t *page_state(struct page *p, const char *name)
{
    uint8_t box[STATE_MAX + SEAL_EXTRA];
    char content[STATE_MAX + 1];
    size_t len = 0;
    struct str value = cookie_read(p, name);
    if (!value.len || sodium_base642bin(box, sizeof box, value.at, value.len, NULL, &len, NULL, BASE64) ||
        len < SEAL_EXTRA ||
        seal_open(&p->pages->seal_key, str_of(name), (struct str){(const char *)box, len}, (uint8_t *)content))
        return NULL;
    AUTO(json) json_t *root = json_read_object((struct str){content, len - SEAL_EXTRA}, NULL);
    json_t *state = json_object_get(root, "state");
    secret_wipe(content, sizeof content);
    if (!json_is_object(state) || json_integer_value(json_object_get(root, "until")) < clock_wall_us() / 1000000)
        return NULL;
    if (!request_at_end(p->rq, free_json, json_incref(state))) {
        json_decref(state);
        return NULL;
    }
    return state;
}

void page_keep(struct page *p, const char *name, json_t *state, int64_t life_s)
{
    uint8_t box[STATE_MAX + SEAL_EXTRA];
    char value[sodium_base64_ENCODED_LEN(sizeof box, BASE64)], content[STATE_MAX];
    json_int_t until_s = clock_wall_us() / 1000000 + life_s;
    AUTO(json) json_t *root = json_pack("{s:I,s:o}", "until", until_s, "state", state);
    size_t len = root ? json_dumpb(root, content, sizeof content, JSON_COMPACT) : 0;
    if (len == 0 || len > sizeof content)
        return; /* the next page begins again */
    seal(&p->pages->seal_key, str_of(name), (struct str){content, len}, box);
    sodium_bin2base64(value, sizeof value, box, len + SEAL_EXTRA, BASE64);
    secret_wipe(content, sizeof content);
    cookie_write(p, name, value, life_s, false);
}

void page_forget(struct page *p, const char *name)
{
    cookie_write(p, name, "", 0, false);
}
