package events

import (
	"encoding/json"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"

	"belay/agent"
)

// decode reads the first payload into v and says whether there was one that could be read.
func decode(p *common.Payloads, v any) bool {
	if len(p.GetPayloads()) == 0 || p.GetPayloads()[0] == nil {
		return false
	}
	return converter.GetDefaultDataConverter().FromPayload(p.GetPayloads()[0], v) == nil
}

// decodeRaw reads the first payload as it lies there.
func decodeRaw(p *common.Payloads) []byte {
	var raw converter.RawValue
	if !decode(p, &raw) {
		return nil
	}
	return raw.Payload().GetData()
}

// plain gives fields as JSON has them, without those that say nothing, so that an event is the same whether it comes from
// a history or was sealed. A number that may be zero is given by pointer.
func plain(fields map[string]any) map[string]any {
	b, err := json.Marshal(fields)
	if err != nil {
		return map[string]any{} // a float that JSON has no form for: no payload holds one
	}
	flat := map[string]any{}
	if err := json.Unmarshal(b, &flat); err != nil || flat == nil {
		return map[string]any{}
	}
	for k, v := range flat {
		if _, given := fields[k].(*int); empty(v) && !(given && v != nil) {
			delete(flat, k)
		}
	}
	return flat
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "0s"
	case float64:
		return v == 0
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// failureOf is what a failure says: its category, its own words, and what it cost.
func failureOf(f *failure.Failure) (kind agent.ErrorType, text string, spent agent.Usage) {
	for f != nil {
		switch {
		case f.GetApplicationFailureInfo() != nil:
			info := f.GetApplicationFailureInfo()
			decode(info.GetDetails(), &spent)
			return agent.ErrorType(info.GetType()), f.GetMessage(), spent
		case f.GetTimeoutFailureInfo() != nil && f.GetCause() == nil:
			return agent.Timeout, f.GetMessage(), spent
		case f.GetCanceledFailureInfo() != nil:
			decode(f.GetCanceledFailureInfo().GetDetails(), &spent)
			return agent.Cancelled, f.GetMessage(), spent
		}
		text = f.GetMessage()
		f = f.GetCause()
	}
	return kind, text, spent
}
