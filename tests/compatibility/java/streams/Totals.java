import java.time.Duration;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

/**
 * Kafka Streams, unmodified, exactly once: orders joined with payments within ten seconds, and per customer and minute
 * the sum of what was paid. Keys are customer:number, values amounts. Arguments: bootstrap, prefix of the topics (and
 * application id), folder of the state. It runs until it is killed.
 */
public final class Totals {
    public static void main(String[] arguments) {
        String prefix = arguments[1];
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> orders = builder.stream(prefix + "-orders");
        KStream<String, String> payments = builder.stream(prefix + "-payments");
        JoinWindows near = JoinWindows.ofTimeDifferenceAndGrace(Duration.ofSeconds(10), Duration.ofDays(1));
        KStream<String, String> paid = orders.join(payments, (ordered, payment) -> payment, near);
        paid.to(prefix + "-paid");
        paid.map((key, amount) -> KeyValue.pair(key.substring(0, key.indexOf(':')), Long.parseLong(amount)))
                .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
                .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofMinutes(1), Duration.ofDays(1)))
                .aggregate(() -> 0L, (customer, amount, sum) -> sum + amount, Materialized.with(Serdes.String(), Serdes.Long()))
                .toStream((window, sum) -> window.key() + "@" + window.window().start())
                .mapValues(String::valueOf)
                .to(prefix + "-totals", Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings(arguments[0], prefix, arguments[2]));
        streams.start();
    }

    private static Properties settings(String bootstrap, String application, String folder) {
        Properties settings = new Properties();
        settings.put("application.id", application);
        settings.put("bootstrap.servers", bootstrap);
        settings.put("state.dir", folder);
        settings.put("processing.guarantee", "exactly_once_v2");
        settings.put("commit.interval.ms", "100");
        settings.put("default.key.serde", Serdes.StringSerde.class.getName());
        settings.put("default.value.serde", Serdes.StringSerde.class.getName());
        // A killed instance says no good-bye: the next one waits for its session.
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "1000");
        settings.put("auto.offset.reset", "earliest");
        return settings;
    }
}
