"""Two conversations of an agent as GenAI spans, by the OpenTelemetry SDK itself, as OTLP JSON on standard output."""
import random
import sys
import time

from google.protobuf.json_format import MessageToJson
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

memory = InMemorySpanExporter()
provider = TracerProvider(resource=Resource.create({"service.name": "assistant"}))
provider.add_span_processor(SimpleSpanProcessor(memory))
tracer = provider.get_tracer("chat")
numbers = random.Random(1)
for conversation in range(2):
    prompt = 0
    for turn in range(3):
        with tracer.start_as_current_span("agent turn"):
            with tracer.start_as_current_span("chat toy") as span:
                prompt += numbers.randint(20, 60)
                answer = numbers.randint(5, 30)
                time.sleep(answer * 0.004)
                span.set_attribute("gen_ai.operation.name", "chat")
                span.set_attribute("gen_ai.request.model", "toy")
                span.set_attribute("gen_ai.conversation.id", "conversation-%d" % conversation)
                span.set_attribute("gen_ai.usage.input_tokens", prompt)
                span.set_attribute("gen_ai.usage.output_tokens", answer)
                prompt += answer
        time.sleep(0.05)
sys.stdout.write(MessageToJson(encode_spans(memory.get_finished_spans()), indent=None) + "\n")
