/* Private to src/erasure: requests to Supabase's Storage API, and what its answers mean. */
#ifndef ERASURE_STORAGE_API_H
#define ERASURE_STORAGE_API_H

#include "base/json.h"
#include "client/client.h"

#define STORAGE_PAGE 100 /* entries of a list, and objects of a deletion */
#define STORAGE_CALL_NS (15 * NS_PER_S)

struct storage_api {
    char *url;                    /* without a slash at its end; NULL: not set */
    char *authorization, *apikey; /* header lines */
    const char *headers[4];
};

enum err storage_api_open(struct storage_api *api, const char *url, const char *key) MUST_CHECK;
void storage_api_close(struct storage_api *api);

struct storage_request { /* embedded in the caller's struct; one call at a time */
    struct client_call call;
    struct buf url, body;
};
void storage_request_free(struct storage_request *request);

/* Each sends a request; `done` is called on the client's thread. */
void storage_ask_bucket(const struct storage_api *api, struct client *client, struct storage_request *request,
                        struct str bucket, void (*done)(struct client_call *call));
/* The folder ends with a slash. Entries are in the order of their names. */
void storage_list(const struct storage_api *api, struct client *client, struct storage_request *request,
                  struct str bucket, struct str folder, int64_t offset, void (*done)(struct client_call *call));
void storage_delete(const struct storage_api *api, struct client *client, struct storage_request *request,
                    struct str bucket, const struct str *names, size_t count, void (*done)(struct client_call *call));

/* Why a request failed, as a sentence without personal data that says what to do; false when it did not. */
struct storage_trouble {
    char words[200];
};
bool storage_failed(const struct client_call *call, struct str bucket, struct storage_trouble *ret);

/* For `reclaim doctor`: whether the API is there, takes the key and has the bucket. Blocks. */
enum err storage_check_bucket(const struct storage_api *api, struct str bucket, int64_t deadline_ns,
                              struct storage_trouble *ret) MUST_CHECK;

#endif
