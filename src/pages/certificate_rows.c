/* What a certificate and a ledger say, as values for the templates. */
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "erasure/certificate.h"
#include "pages/certificate.h"

static const char *text_in(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* Reclaim's own participants have sentences, others a label or only a name. */
static void set_label(const struct page *p, json_t *one)
{
    static const struct {
        const char *name;
        enum text label;
    } own[] = {{"reclaim.calls", TEXT_CERTIFICATE_OWN_CALLS},
               {"reclaim.charges", TEXT_CERTIFICATE_OWN_CHARGES},
               {"reclaim.adjustments", TEXT_CERTIFICATE_OWN_ADJUSTMENTS}};
    const char *name = text_in(one, "name");
    for (size_t i = 0; i < COUNT_OF(own); i++)
        if (name && strcmp(name, own[i].name) == 0) {
            struct str text = sentence(p->reader.sentences, p->reader.language, own[i].label);
            json_object_set_new(one, "label", json_stringn(text.at, text.len));
        }
    if (json_string_length(json_object_get(one, "label")) == 0)
        json_object_set(one, "label", json_object_get(one, "name"));
    else if (name && strcmp(text_in(one, "label"), name) != 0)
        json_object_set_new(one, "named", json_true());
}

static void set_labels(const struct page *p, json_t *list)
{
    size_t i;
    json_t *one;
    json_array_foreach(list, i, one) set_label(p, one);
}

/* --- the certificate --- */

bool certificate_ask_keys(struct page *p, bool (*then)(struct page *p))
{
    page_set_text(p, "jws", p->rq->reply.body);
    page_ask(p, &(struct forward){.method = METHOD_GET, .path = STR("/.well-known/reclaim-erasure-key")}, then);
    return false;
}

static void set_claims(struct page *p, json_t *claims)
{
    char issued[25];
    json_t *participants = json_object_get(claims, "participants");
    clock_format_ms(json_integer_value(json_object_get(claims, "iat")) * 1000000, issued);
    json_object_set_new(claims, "issued_at", json_string(issued));
    set_labels(p, participants);
    set_labels(p, json_object_get(claims, "kept"));
    page_set(p, "services", json_integer((json_int_t)json_array_size(participants)));
    page_set(p, "certificate", json_incref(claims));
}

bool certificate_set(struct page *p)
{
    struct proof_key_set set;
    struct why why;
    struct str keys = p->rq->reply.body;
    if (p->rq->reply.status != 200 || proof_key_set_read(keys, &set, &why))
        return false;
    AUTO(json) json_t *claims = certificate_check(str_of(text_in(p->values, "jws")), &set, &why);
    if (claims)
        set_claims(p, claims);
    else {
        log_error("a certificate of erasure does not hold", F_STR("why", why.text));
        page_set_text(p, "broken", str_of(why.text));
    }
    return true;
}

/* --- how far it is --- */

bool certificate_set_progress(struct page *p)
{
    json_t *ledger = p->rq->reply.status == 200 ? page_answer(p) : NULL;
    if (!ledger)
        return false;
    json_t *services = json_array(), *kept = json_array(), *one;
    size_t i;
    json_int_t confirmed = 0;
    set_labels(p, json_object_get(ledger, "participants"));
    json_array_foreach(json_object_get(ledger, "participants"), i, one)
    {
        const char *status = text_in(one, "status");
        bool is_kept = status && strcmp(status, "kept") == 0;
        confirmed += status && strcmp(status, "done") == 0;
        json_array_append(is_kept ? kept : services, one);
    }
    json_int_t all = (json_int_t)json_array_size(services);
    page_set(p, "erasure", json_incref(ledger));
    page_set(p, "all", json_integer(all));
    page_set(p, "confirmed", json_integer(confirmed));
    page_set(p, "waiting", json_boolean(confirmed < all));
    page_set(p, "services", services);
    page_set(p, "kept", kept);
    return true;
}

bool certificate_is_refused(struct page *p, const char *code)
{
    const char *its = p->rq->reply.status == 404 ? text_in(page_answer(p), "error") : NULL;
    return its && strcmp(its, code) == 0;
}
