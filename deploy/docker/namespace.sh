#!/bin/sh
# Makes the namespace TEMPORAL_NAMESPACE with 30 days of retention and Belay's search attributes. Safe to repeat.
set -eu

attempts=0
until temporal operator cluster health >/dev/null; do
	attempts=$((attempts + 1))
	[ "$attempts" -lt 30 ] || exit 1
	sleep 2
done

temporal operator namespace describe --namespace "$TEMPORAL_NAMESPACE" >/dev/null 2>&1 ||
	temporal operator namespace create --namespace "$TEMPORAL_NAMESPACE" --retention 720h
temporal operator namespace update --namespace "$TEMPORAL_NAMESPACE" --retention 720h

temporal operator search-attribute create --namespace "$TEMPORAL_NAMESPACE" \
	--name BelayState --type Keyword \
	--name BelayTenant --type Keyword \
	--name BelayAgent --type Keyword \
	--name BelayUser --type Keyword \
	--name BelayRisk --type Keyword \
	--name BelayDecision --type Keyword \
	--name BelayWaitingFor --type KeywordList \
	--name BelaySteps --type Int \
	--name BelayCostUSD --type Double
