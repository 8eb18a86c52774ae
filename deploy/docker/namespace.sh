#!/bin/sh
# Makes the namespace TEMPORAL_NAMESPACE with 30 days of retention and Belay's search attributes. Safe to repeat.
set -eu

# A server that has just started, and a namespace that was just made, take some seconds to answer.
patiently() {
	attempts=0
	until "$@"; do
		attempts=$((attempts + 1))
		[ "$attempts" -lt 30 ] || exit 1
		sleep 2
	done
}

patiently temporal operator cluster health
if temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1; then
	temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention 720h
else
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 720h
fi
patiently temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
	--name BelayState --type Keyword \
	--name BelayTenant --type Keyword \
	--name BelayAgent --type Keyword \
	--name BelayUser --type Keyword \
	--name BelayRisk --type Keyword \
	--name BelayDecision --type Keyword \
	--name BelayWaitingFor --type KeywordList \
	--name BelaySteps --type Int \
	--name BelayCostUSD --type Double
