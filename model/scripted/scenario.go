// Package scripted is an OpenAI-compatible model server that answers from scenario files. Tests and the demo use it over
// HTTP through the same client that talks to a real model.
//
// A scenario is a list of rules, tried in order against what the conversation shows; the first that matches answers. The
// server keeps no state of a conversation, so it serves many tasks at once and may be restarted in the middle of one. Two
// things it does count in memory, by what a request shows: how often a fault with a number of times has struck, and how many
// requests each turn of each conversation took. Conversations with the same system message and goal count as one.
//
// Scenario files are YAML:
//
//	rules:
//	  - name: look
//	    when: {turn: 1}
//	    reply:
//	      text: I look first.
//	      calls: [{tool: shell, arguments: {command: ls}}]
//	  - name: give up on errors
//	    when: {last_tool_contains: "No such file"}
//	    reply: {text: "It is not there: {{.LastTool}}"}
//	  - reply: {text: Done.}
//	    fault: {times: 2, status: 429, headers: {Retry-After: "1"}}
package scripted

import "belay/agent"

// Scenario is what one scripted model does. It is served under its name, with or without "scripted/" before it.
type Scenario struct {
	Name string `yaml:"name"` // the file's name without its extension, where it is not given
	// Cache makes usage report as cached what the request of the turn before held.
	Cache bool `yaml:"cache"`
	// OmitUsage makes a server that tells no usage, as some do.
	OmitUsage bool `yaml:"omit_usage"`
	// Unsupported lists fields of a request that are refused with status 400, such as stream_options.
	Unsupported []string `yaml:"unsupported"`
	Rules       []Rule   `yaml:"rules"`
}

// Rule is one answer and when it is given. It has a Reply or a Repeat; with a Fault that always strikes with a status it may
// have neither.
type Rule struct {
	Name   string  `yaml:"name"` // "rule 3" where it is not given
	When   When    `yaml:"when"`
	Reply  *Reply  `yaml:"reply"`
	Repeat *Repeat `yaml:"repeat"`
	Fault  *Fault  `yaml:"fault"`
}

// When is what a conversation must show: everything that is given. An empty one always matches.
type When struct {
	Turn        int         `yaml:"turn"`          // replies so far, plus one
	CallsMade   *int        `yaml:"calls_made"`    // by all replies so far
	Last        agent.Role  `yaml:"last"`          // who spoke last: user or tool
	Called      string      `yaml:"called"`        // a tool that some reply called
	NotCalled   string      `yaml:"not_called"`    // a tool that no reply called
	WithTools   *bool       `yaml:"with_tools"`    // whether the request offers tools
	Goal        contains    `yaml:"goal_contains"` // the first user message
	NotGoal     containsNot `yaml:"not_goal_contains"`
	System      contains    `yaml:"system_contains"`
	NotSystem   containsNot `yaml:"not_system_contains"`
	LastUser    contains    `yaml:"last_user_contains"`
	NotLastUser containsNot `yaml:"not_last_user_contains"`
	LastTool    contains    `yaml:"last_tool_contains"` // the results of the last reply that called tools
	NotLastTool containsNot `yaml:"not_last_tool_contains"`
}

// Template is a text/template over the fields of View.
type Template string

// View is what a conversation shows to templates.
type View struct {
	Turn     int    // replies so far, plus one
	Calls    int    // calls made by all replies so far
	System   string // the system messages
	Goal     string // the first user message
	LastUser string
	LastTool string // the results of the last reply that called tools, one after the other
}

// Reply is one answer. One without anything in it is an empty reply.
type Reply struct {
	Text    Template `yaml:"text"`
	Refusal Template `yaml:"refusal"`
	Calls   []Call   `yaml:"calls"`
	Finish  string   `yaml:"finish"` // tool_calls where there are calls, else stop
	Usage   *Usage   `yaml:"usage"`  // counted, a token for every four bytes, where it is not given
}

// Call is one tool call of a reply. The strings in Arguments are templates.
type Call struct {
	Tool         string         `yaml:"tool"`
	Arguments    map[string]any `yaml:"arguments"`
	RawArguments *Template      `yaml:"raw_arguments"` // instead of Arguments, word for word: bad JSON too
	ID           string         `yaml:"id"`            // made from turn and place where it is not given
}

// Usage is what a reply says that it cost, in tokens.
type Usage struct {
	Input  int `yaml:"input"`
	Output int `yaml:"output"`
	Cached int `yaml:"cached"`
}

// Repeat makes the same call until the conversation holds a number of calls, then says a text.
type Repeat struct {
	Calls     int            `yaml:"calls"`
	PerReply  int            `yaml:"per_reply"` // 1
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	Text      Template       `yaml:"text"` // "Done." where it is not given
}

// Fault is how an answer goes wrong. Chunks are the events of a stream; the first carries no text.
type Fault struct {
	// Times is how many requests in the same state of a conversation it strikes; zero: every one. State means the messages
	// as a whole, so a retry is in the same state and the next turn is not.
	Times int `yaml:"times"`

	Status  int               `yaml:"status"` // answer with this HTTP status, and Message and Code in the body
	Headers map[string]string `yaml:"headers"`
	Message string            `yaml:"message"`
	Code    string            `yaml:"code"`

	FirstDelay agent.Duration `yaml:"first_delay"` // before anything is sent
	ChunkDelay agent.Duration `yaml:"chunk_delay"` // before every chunk
	ChunkBytes int            `yaml:"chunk_bytes"` // how much text or arguments a chunk carries; 32
	StallAfter *int           `yaml:"stall_after"` // chunks, then silence until the client leaves; 0: not even a status
	CutAfter   *int           `yaml:"cut_after"`   // chunks, then the connection is cut; 0: before there is a status
	ErrorAfter *int           `yaml:"error_after"` // chunks, then an event with Message and Code ends the stream
}
