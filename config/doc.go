// Package config turns one folder of files into one validated Bundle: the agents, models, policies, tenants, reviewers and
// sandbox profiles that runs work under. The worker and the belay command read the same folder through it.
//
//	agents/<name>.yaml      Agent; its prompt inline or in a .md file beside it
//	models/<name>.yaml      model.Config
//	policy/*.yaml           rules, read by package policy
//	tenants/<name>.yaml     Tenant
//	sandbox.yaml            sandbox profiles by name
//	reviewers.yaml          Reviewers; may be absent
//
// The folder is read once into memory and judged as a whole, references from one file to another included. One bad line
// refuses all of it, and every bad line is told: "agents/coder.yaml:7: tools[1]: "shel": no such tool; did you mean
// "shell"?". So whoever holds a Bundle holds one that works, and a worker that reloads (Live) keeps the last good one.
//
// The package reads no environment: what one worker adds to the files is a Place.
package config
