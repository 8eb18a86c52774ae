// Package store keeps what a run must not lose: content, conversations, workspaces and small named records, on any
// gocloud.dev/blob bucket. A run's own state is then a few digests.
//
// Everything belongs to a tenant, and the tenant is part of every key: knowing a digest gives nobody another tenant's
// content. Content is named by its SHA-256, compressed with zstd and verified whenever it is read. What was damaged is an
// [agent.Error] of type StateError that names the digest or the record; what is missing wraps [ErrNotFound] as well. A
// bucket that can't be reached is a NetworkError, a full one ResourceExhausted.
//
// # Conversations
//
// A conversation is a chain of turns, each naming the one before it, so that its head says all of it. Every few turns a
// pack repeats the turns since an earlier pack, over spans that grow eightfold: a conversation of n turns is read with
// O(log n) packs and the few turns after the last one, and the store holds each turn about three times, compressed.
//
// # Workspaces
//
// A workspace tree is a Merkle tree of folders, like git's, of names, permission bits, contents and link targets. Times
// and owners are not part of it: equal trees have equal digests whoever saved them and when, and restored files carry the
// time of their restoration, as in git, so that a build tool never takes a restored source for older than its output.
// A save puts what is new in it into a few packs; where a file lies is noted beside the folder that names it, outside of
// what the folder's digest covers.
//
// # Layout of a bucket
//
//	t/<tenant>/c/<2 hex>/<62 hex>    content, by the digest of its bytes
//	t/<tenant>/k/<2 hex>/<62 hex>    packs of turns, by the digest of the last turn in it
//	t/<tenant>/w/<2 hex>/<62 hex>    top folders of workspace trees, by the digest of the tree
//	t/<tenant>/r/<name>!             records
//
// Objects are written whole or not at all, what refers after what it refers to. Nothing is deleted here. A local bucket
// is not forced to disk: after a power loss an object may be damaged, which is then found when it is read.
package store
